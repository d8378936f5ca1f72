"""``report.html``: one executed notebook as one file that needs no network.

Findings come first, then the notebook in its order with the code folded, at the end what the run
was made of. Everything that came out of a cell passes ``safe_html`` or ``safe_svg``; everything
else is escaped. A strict Content-Security-Policy allows one stylesheet and one script of ours, by
their hash, and images inside the file. The page says all without its script.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from tallybook.runbook import answers
from tallybook.runbook.answers import MIME
from tallybook.runbook.catalogue import tags_of, text_of
from tallybook.runbook.drawing import safe_svg
from tallybook.runbook.page import page
from tallybook.runbook.page import text as escape
from tallybook.runbook.tables import safe_html

_WIDGET = "application/vnd.jupyter.widget-view+json"
_UNSHOWN = {"parameters", "injected-parameters", "papermill-error-cell-tag"}
_SHOWN_IDS = 12
WORDS = {
    "running": "running",
    "interrupted": "interrupted",
    "clean": "clean",
    "findings": "findings",
    "incomplete": "incomplete input",
    "failed": "failed",
    "bad_input": "bad input",
}


@dataclass(frozen=True, slots=True)
class Header:
    """What stands around the notebook: ``facts`` above it, ``provenance`` below it, both as
    (name, text) in their order."""

    name: str
    status: str
    message: str
    facts: Sequence[tuple[str, str]]
    parameters: Sequence[tuple[str, str, str]]
    findings: Sequence[Mapping[str, Any]]
    provenance: Sequence[tuple[str, str]]


def render(header: Header, cells: Sequence[Mapping[str, Any]]) -> str:
    """The whole page. ``cells`` are those of an executed notebook (nbformat 4)."""
    title, question, rest = _titled(header.name, cells)
    names = count(1)
    body = "\n".join(_cell(cell, names) for cell in _without_answer(rest, header))
    status = WORDS.get(header.status, "")
    return page(
        f"{title}: {status}",
        f"""<header>
<h1>{escape(title)}</h1>
<span class="status {escape(header.status)}">{status}</span>
<div class="question">{question}</div>
{_failure(header.message)}
<dl class="facts">{"".join(_fact(*fact) for fact in header.facts)}</dl>
{_parameters(header.parameters)}
</header>
<section id="findings">
<h2>Findings</h2>
{_tallied(header.findings)}
{_findings(header)}
</section>
<main>
{body}
</main>
<footer>
<h2>Provenance</h2>
<dl class="facts">{"".join(_fact(*fact) for fact in header.provenance)}</dl>
</footer>""",
    )


def _titled(
    name: str, cells: Sequence[Mapping[str, Any]]
) -> tuple[str, str, Sequence[Mapping[str, Any]]]:
    """The heading and the text of the first cell, and the cells after it."""
    shown = [cell for cell in cells if not _UNSHOWN & set(tags_of(cell))]
    if not shown or shown[0].get("cell_type") != "markdown":
        return name, "", shown
    first, _, rest = text_of(shown[0]).partition("\n")
    if not first.startswith("# "):
        return name, _markdown(text_of(shown[0])), shown[1:]
    return first[2:].strip(), _markdown(rest), shown[1:]


def _without_answer(
    cells: Sequence[Mapping[str, Any]], header: Header
) -> Sequence[Mapping[str, Any]]:
    """The cells without the last, and its heading, where its findings stand at the top."""
    last = cells[-1] if header.findings and cells else {}
    shown = [output.get("data", {}) for output in last.get("outputs", ())]
    if not shown or not all(MIME in data for data in shown):
        return cells
    heading = len(cells) > 1 and re.fullmatch(r"#+ [^\n]*\n*", text_of(cells[-2]))
    return cells[: -2 if heading else -1]


def _tallied(findings: Sequence[Mapping[str, Any]]) -> str:
    """How many findings there are, and how many that are only told."""
    told = answers.tallied(findings)
    return f"<p><small>{told}</small></p>" if told else ""


def _fact(name: str, text: str) -> str:
    return f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"


def _failure(message: str) -> str:
    return f'<p class="failure">{escape(message)}</p>' if message else ""


def _parameters(parameters: Sequence[tuple[str, str, str]]) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td><code>{escape(value)}</code></td>"
        f"<td>{escape(meaning)}</td></tr>"
        for name, value, meaning in parameters
    )
    table = f'<div class="wide"><table><tbody>{rows}</tbody></table></div>'
    return f"<details><summary>all parameters</summary>{table}</details>"


def _findings(header: Header) -> str:
    if header.findings:
        graver = sorted(header.findings, key=lambda found: _grade(found.get("severity")))
        return "\n".join(_finding(found) for found in graver)
    return "<p>None.</p>" if header.status == "clean" else "<p>The run gave no answer.</p>"


def _grade(severity: object) -> int:
    order = ("problem", "warning", "info")
    return order.index(str(severity)) if severity in order else len(order)


def _finding(found: Mapping[str, Any]) -> str:
    severity = str(found.get("severity", ""))
    kind = severity if severity in ("problem", "warning", "info") else "info"
    evidence, action = str(found.get("evidence") or ""), str(found.get("action") or "")
    title = escape(str(found.get("title")))
    lines = [
        f'<h3><span class="severity">{escape(severity)}</span>{title}</h3>',
        f"<p>{escape(evidence)}</p>" if evidence else "",
        _ids([str(one) for one in found.get("ids") or ()]),
        f"<p>Next: <code>{escape(action)}</code></p>" if action else "",
    ]
    return f'<article class="finding {kind}">{"".join(lines)}</article>'


def _ids(ids: Sequence[str]) -> str:
    if not ids:
        return ""
    shown = f'<p class="ids">{_listed(ids[:_SHOWN_IDS])}</p>'
    if len(ids) <= _SHOWN_IDS:
        return shown
    rest = _listed(ids[_SHOWN_IDS:])
    more = f"<summary>{len(ids) - _SHOWN_IDS} more</summary>"
    return f'{shown}<details>{more}<p class="ids">{rest}</p></details>'


def _listed(ids: Sequence[str]) -> str:
    """Ids with commas between them, none broken at its hyphens or before its comma."""
    marked = [f"{one}," for one in ids[:-1]] + list(ids[-1:])
    return " ".join(f'<span class="id">{escape(one)}</span>' for one in marked)


def _cell(cell: Mapping[str, Any], names: Iterable[int]) -> str:
    source = text_of(cell)
    if cell.get("cell_type") == "markdown":
        return _markdown(source)
    if cell.get("cell_type") != "code" or not source.strip():
        return ""
    code = f"<details><summary>code</summary><pre>{escape(source)}</pre></details>"
    return "\n".join([*(_output(output, names) for output in cell.get("outputs", ())), code])


def _markdown(source: str) -> str:
    import mistune  # late: comes with the extra ops

    made = mistune.create_markdown(escape=True, plugins=["table"])(source)
    return safe_html(made) if isinstance(made, str) else ""


def _output(output: Mapping[str, Any], names: Iterable[int]) -> str:
    kind = output.get("output_type")
    if kind == "stream":
        return _stream(output)
    if kind == "error":
        return _error(output)
    shown = {name: _joined(value) for name, value in output.get("data", {}).items()}
    return _shown(shown, names)


def _shown(shown: Mapping[str, str], names: Iterable[int]) -> str:
    """The richest form that is safe; the answer of the last cell already stands at the top."""
    if MIME in shown:
        return "<p><small>The findings stand at the top of this page.</small></p>"
    if "image/svg+xml" in shown:
        drawn = safe_svg(shown["image/svg+xml"], f"c{next(iter(names))}-")
        return f'<div class="chart">{drawn}</div>' if drawn else "<p>A drawing was refused.</p>"
    if pixels := _base64(shown.get("image/png", "")):
        return f'<div class="chart"><img alt="" src="data:image/png;base64,{pixels}"></div>'
    if "text/html" in shown:
        return f'<div class="wide">{safe_html(shown["text/html"])}</div>'
    if _WIDGET in shown:
        where = "look at it in <code>tallybook lab</code>"
        return f"<p><small>What stands here moves: {where}.</small></p>"
    text = shown.get("text/plain", "")
    return f"<pre>{escape(text)}</pre>" if text else ""


def _stream(output: Mapping[str, Any]) -> str:
    text = f"<pre>{escape(_joined(output.get('text', '')))}</pre>"
    if output.get("name") == "stderr":
        return f"<details><summary>standard error</summary>{text}</details>"
    return text


def _error(output: Mapping[str, Any]) -> str:
    line = f"{output.get('ename')}: {output.get('evalue')}"
    trace = "\n".join(output.get("traceback", ()))
    folded = f"<details><summary>traceback</summary><pre>{escape(trace)}</pre></details>"
    return f'<div class="failure">{escape(line)}{folded}</div>'


def _joined(value: Any) -> str:
    return value if isinstance(value, str) else "".join(value) if isinstance(value, list) else ""


def _base64(text: str) -> str:
    """``text`` as clean base64, or empty where it is none."""
    try:
        return base64.b64encode(base64.b64decode("".join(text.split()), validate=True)).decode()
    except (binascii.Error, ValueError):
        return ""
