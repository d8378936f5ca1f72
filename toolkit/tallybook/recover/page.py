"""The certificate as one page: it opens with no network and runs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from tallybook.recover.certificate import Certificate
from tallybook.recover.survivors import Surviving

_SHOWN = 200
_RULE = (
    '<p class="soft">Equal on any machine for equal keys and values. A key is proven where a full '
    "write of it stands behind everything that is missing or edited; else its value may be an old "
    "one.</p>"
)


def html(certificate: Certificate) -> str:
    """The page of ``certificate``; long lists are cut, with their length said."""
    template = Template(files("tallybook.recover").joinpath("certificate.html").read_text("utf-8"))
    return template.substitute(
        node=escape(certificate.node_id),
        made_at=escape(certificate.made_at),
        as_of=f" · as of {escape(certificate.as_of)}" if certificate.as_of else "",
        body=body(certificate),
    )


def body(certificate: Certificate) -> str:
    """What the page and a runbook show of ``certificate``."""
    status = "complete" if certificate.complete else "incomplete"
    statements = "".join(f"<li>{escape(one)}</li>" for one in certificate.statements)
    return (
        f'<p class="verdict {status}">{_verdict(certificate)}</p><ul>{statements}</ul>'
        f"<table><tbody>{_rows(_figures(certificate))}</tbody></table>"
        f"<p>Parity of the cache: <code>{escape(certificate.parity)}</code></p>{_RULE}"
        + "\n".join(_sections(certificate))
    )


def _verdict(certificate: Certificate) -> str:
    if certificate.complete:
        return "Everything is known: no line of the log is missing, unreadable or edited."
    return "Something is not known: see below what, and why."


def _figures(certificate: Certificate) -> Iterable[tuple[str, Any]]:
    end = certificate.end
    yield "keys proven", certificate.keys.proven
    yield "keys unknown", certificate.keys.unknown
    yield "keys proven, but in lines that no hash covers", certificate.keys.unsealed
    yield "jobs", ", ".join(f"{n:,} {status}" for status, n in certificate.jobs.items()) or 0
    yield "jobs of which something may be missing", len(certificate.unknown_jobs)
    yield "jobs whose payload is lost", len(certificate.payloads_lost)
    yield "events folded", certificate.events_used
    yield "events missing", certificate.missing_events
    yield "lines that stand twice", certificate.doubled
    yield "the log reaches", f"{certificate.first_at or '-'} to {certificate.last_at or '-'}"
    yield "the end", f"seq {end['seq']} of writer {end['writer'] or '-'}, hash {end['hash']}"
    if certificate.base:
        yield "begun with the checkpoint", certificate.base


def _sections(certificate: Certificate) -> Iterable[str]:
    yield _table(
        "Holes: events that are missing",
        ("writer", "first seq", "last seq", "events", "after", "before", "known from"),
        [
            (x.writer, x.first_seq, x.last_seq, x.events, x.after_at or "", x.before_at or "",
             "; ".join(x.known_from) or "the lines around it")
            for x in certificate.losses
        ],
    )  # fmt: skip
    yield _table(
        "Edited: one or more of these lines was changed",
        ("segment", "writer", "first seq", "last seq"),
        [(x.segment, x.writer, x.first_seq, x.last_seq) for x in certificate.edits],
    )
    yield _table(
        "Quarantined: lines that are no event",
        ("segment", "line", "byte", "reason"),
        [(x.segment, x.line, x.byte_offset, x.reason) for x in certificate.quarantined],
    )
    yield _list("Keys that cannot be known: an old value may stand here", certificate.unknown_keys)
    yield _list("Jobs of which something may be missing", certificate.unknown_jobs)
    yield _list("Jobs whose payload is lost", certificate.payloads_lost)
    yield _list("Kept out of the log by the settings", certificate.withheld)
    for surviving in certificate.surviving:
        yield _compared(surviving)
    yield _list("Keys whose last write no hash covers yet", certificate.unsealed_keys)
    yield _table(
        "Segments",
        ("segment", "state", "first seq", "last seq", "lines", "from", "to", "hash"),
        [
            (x.segment, x.state, x.first_seq, x.last_seq, x.lines, x.first_at, x.last_at, x.hash)
            for x in certificate.segments
        ],
    )


def _compared(surviving: Surviving) -> str:
    title = f"Compared with {surviving.source}, which was found beside the log"
    if surviving.error:
        return f"<h2>{escape(title)}</h2><p>It cannot be compared: {escape(surviving.error)}.</p>"
    counts = (
        ("the same", surviving.same),
        ("differ", len(surviving.differs)),
        ("only in the log", len(surviving.only_rebuilt)),
        (f"only in {surviving.source}", len(surviving.only_surviving)),
        ("its parity", surviving.parity),
    )
    named = [*surviving.differs, *surviving.only_surviving]
    return f"<h2>{escape(title)}</h2><table><tbody>{_rows(counts)}</tbody></table>" + _list(
        "Keys that differ, or that the log does not have", named
    )


def _rows(pairs: Iterable[tuple[str, Any]]) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{_cell(value)}</td></tr>'
        for name, value in pairs
    )


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else escape(str(value))


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in rows[:_SHOWN]
    )
    return (
        f"<h2>{escape(title)} ({len(rows):,})</h2><div class='wide'><table><thead><tr>{head}"
        f"</tr></thead><tbody>{body}</tbody></table></div>{_more(len(rows))}"
    )


def _list(title: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = "".join(f"<li><code>{escape(name)}</code></li>" for name in names[:_SHOWN])
    return (
        f"<h2>{escape(title)} ({len(names):,})</h2><ul class='names'>{shown}</ul>"
        f"{_more(len(names))}"
    )


def _more(number: int) -> str:
    left = number - _SHOWN
    return f"<p>and {left:,} more, in certificate.json</p>" if left > 0 else ""
