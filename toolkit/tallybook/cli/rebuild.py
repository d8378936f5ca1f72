"""``tallybook rebuild``: state.db, queue and cache, from the log, with a certificate."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.cli import changelog, output
from tallybook.errors import BadInput
from tallybook.layout import find_book

if TYPE_CHECKING:
    from tallybook.recover import Rebuilt, Steps
    from tallybook.recover.caching import CacheRebuilt

HELP = "rebuild state.db (queue and cache) from the log"
INCOMPLETE = 4
_SHOWN = 10
_FIGURES = (
    "keys", "unknown_keys", "jobs", "unknown_jobs", "rescued", "payloads_lost", "events_read",
    "missing_events", "quarantined",
)  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--from", dest="source", metavar="CHECKPOINT",
        help="begin with this checkpoint (a file, or a folder of Parquet), or with a state.db that "
        "was set aside",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="only certify what a rebuild would bring"
    )
    parser.add_argument("--certificate", metavar="DIR", help="write the certificate there too")
    output.add_book(parser)
    output.add_json(parser)


def run(args: argparse.Namespace) -> int:
    """0; 4 where anything is unknown."""
    from tallybook.recover import keeping, rebuild

    out = Path(args.certificate) if args.certificate else None
    if out:
        keeping.require_folder(out, "--certificate")
    with _Shown() as steps:
        rebuilt = rebuild(
            find_book(args.book),
            source=Path(args.source) if args.source else None,
            dry_run=args.dry_run,
            out=out,
            steps=steps,
        )
    output.answer(asdict(rebuilt), args.json, text=lambda: told(rebuilt))
    return 0 if rebuilt.complete else INCOMPLETE


def add_cache(parser: argparse.ArgumentParser) -> None:
    """The options of ``cache rebuild``."""
    parser.add_argument(
        "--as-of", metavar="TIME", help="the cache as of then, or now; the live one is not touched"
    )
    parser.add_argument(
        "--from", dest="source", metavar="SOURCE",
        help="begin with this checkpoint, or with an export of what the cloud holds",
    )  # fmt: skip
    parser.add_argument("--covers", metavar="TIME", help="the instant that the export was taken at")
    parser.add_argument(
        "--key", default="key", metavar="COLUMN",
        help="of the export; of a change log one or more, with commas",
    )  # fmt: skip
    parser.add_argument(
        "--profile", metavar="P",
        help="SOURCE is a change log: debezium, maxwell or a TOML file that says how to read it",
    )  # fmt: skip
    parser.add_argument(
        "--out", metavar="DIR",
        help="write the cache and its certificate there; the live cache is not touched",
    )  # fmt: skip
    parser.add_argument(
        "--format", choices=("ndjson", "parquet"), default="ndjson", help="of the cache in --out"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would come of it")
    parser.add_argument("--certificate", metavar="DIR", help="write the certificate there too")
    output.add_book(parser)
    output.add_json(parser)


def run_cache(args: argparse.Namespace) -> int:
    """As ``run``; with ``--as-of``, ``--out`` or an export the cache alone."""
    if args.profile:
        return changelog.run(args)
    from tallybook.recover import caching, columnar, exports, keeping, restoring

    source = Path(args.source) if args.source else None
    export = source is not None and not columnar.is_one(source) and exports.is_export(source)
    if args.covers and not export:
        raise BadInput("--covers says when an export was taken: name one with --from")
    if not (args.as_of or args.out or export):
        return run(args)
    if args.format == "parquet":
        _require_ops()
    if args.certificate:
        raise BadInput("--certificate DIR: with --as-of, --out or an export use --out DIR")
    if args.out:
        keeping.require_folder(Path(args.out), "--out")
    covers = caching.instant("--covers", args.covers) if args.covers else None
    wish = caching.Wish(
        as_of=_as_of(args.as_of) if args.as_of else None,
        source=None if export else source,
        export=exports.read(source, args.key, covers) if source and export else None,
        out=Path(args.out) if args.out else None,
        kind=args.format,
    )
    is_live = export and not (args.as_of or args.out or args.dry_run)
    act = restoring.restore_cache if is_live else caching.rebuild_cache
    with _Shown() as steps:
        rebuilt = act(find_book(args.book), wish, steps=steps)
    output.answer(asdict(rebuilt), args.json, text=lambda: _told_cache(rebuilt))
    return 0 if rebuilt.complete else INCOMPLETE


def _as_of(given: str) -> str:
    """The instant of ``--as-of``, or that of now; one behind the end of the log stands for it."""
    from tallybook.clock import SystemClock
    from tallybook.recover import caching

    return SystemClock().moment().wall() if given == "now" else caching.instant("--as-of", given)


def _require_ops() -> None:
    if not find_spec("polars"):
        raise BadInput("--format parquet needs the extra ops: pip install 'tallybook[ops]'")


class _Shown:
    """Progress on a terminal, in two lines one after the other."""

    def __enter__(self) -> Steps:
        from tallybook.recover import Steps

        self._reading = output.Progress("segments read")
        self._folding = output.Progress("events folded")
        return Steps(self._reading.show, self._folding.show)

    def __exit__(self, *_: object) -> None:
        self._reading.close()
        self._folding.close()


def _told_cache(rebuilt: CacheRebuilt) -> str:
    shown = asdict(rebuilt)
    figures = ["keys", "unknown_keys", "events_read", "missing_events", "quarantined"]
    names = ("put", "invalidated", "refused")
    changed = rebuilt.put is not None
    lines = [output.table([shown], [*figures, *(names if changed else ())])]
    lines += ["", f"parity {rebuilt.parity}"]
    lines += [f"begun with {rebuilt.checkpoint}"] if rebuilt.checkpoint else []
    lines += [f"cache {rebuilt.cache}"] if rebuilt.cache else []
    paper = Path(rebuilt.certificate).with_suffix(".html") if rebuilt.certificate else None
    lines += [f"certificate {paper}"] if paper else []
    lines += [] if rebuilt.complete else ["INCOMPLETE: keys may be missing or old"]
    return "\n".join([*lines, *([] if changed else ["the live cache was not touched"])])


def told(rebuilt: Rebuilt) -> str:
    """What came back, what is missing, and where the paper lies."""
    shown = asdict(rebuilt)
    lines = [output.table([shown], _FIGURES), "", f"parity {rebuilt.parity}"]
    if rebuilt.checkpoint:
        lines.append(f"begun with the checkpoint {rebuilt.checkpoint}")
    lines += [
        f"lost: {output.seqs(hole.first_seq, hole.last_seq)} of writer {hole.writer}"
        + (f", between {hole.after_at or '?'} and {hole.before_at or '?'}")
        for hole in rebuilt.holes[:_SHOWN]
    ]
    lines += [
        f"edited: among {output.seqs(edit.first_seq, edit.last_seq)} of {edit.segment}"
        for edit in rebuilt.edits[:_SHOWN]
    ]
    left = max(len(rebuilt.holes) - _SHOWN, 0) + max(len(rebuilt.edits) - _SHOWN, 0)
    lines += [f"and {left} more, in the certificate"] if left else []
    lines += [f"old state set aside in {rebuilt.set_aside}"] if rebuilt.set_aside else []
    paper = Path(rebuilt.certificate).with_suffix(".html") if rebuilt.certificate else None
    lines += [f"certificate {paper}"] if paper else []
    lines += _of_the_checkpoint(rebuilt)
    lines += [] if rebuilt.complete else ["INCOMPLETE: " + _what(rebuilt)]
    lines += ["nothing was changed (--dry-run)"] if rebuilt.dry_run else []
    return "\n".join(lines)


def _of_the_checkpoint(rebuilt: Rebuilt) -> list[str]:
    """Where it is newer than the log, that."""
    return [f"note: {one}" for one in rebuilt.statements if one.startswith("the checkpoint ")]


def _what(rebuilt: Rebuilt) -> str:
    """In a few words, what is not known."""
    if rebuilt.missing_events:
        missing = output.counted(rebuilt.missing_events, "missing event")
        if whole := [one for one in rebuilt.statements if one.startswith("a checkpoint saw all")]:
            return f"{missing}; {whole[0]}"
        return f"{missing} may concern any key and any job; the certificate says which are proven"
    if rebuilt.edits or rebuilt.quarantined:
        return "lines of the log were edited or cannot be read; the certificate says which"
    return "payloads of jobs that can still run are lost; see log.payload in the settings"
