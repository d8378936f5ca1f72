"""Record the sample book: ``python -m tallybook.demo.record DEST``.

It runs the demo under a fixed host and node name and keeps its book, exports and planted sets.
What of DEST it made before is replaced; nothing else there is touched.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tallybook.demo import run as demo
from tallybook.demo.folder import Folder
from tallybook.demo.tally import Row
from tallybook.errors import TallybookError
from tallybook.layout import Layout

JOBS = 1500
SEED = 1
NODE = "harbour"
README = """# Sample book

A book that a real run of `tallybook demo --jobs {jobs} --seed {seed}` wrote on {day}, with {sizes}.
Every job, fault, kill and repair in it happened; nothing was edited but three things.
The host and the node are called `{node}`, tracebacks name files from their package on, and
`log/writer.json` does not say which machine it was made on.

| path | what |
|---|---|
| `book/` | log, metrics, and state.db as it was rebuilt from the log |
| `exports/airports.csv`, `exports/airports.ndjson` | the cloud's export after the tampering |
| `planted.json` | what the ledgers of injector, cloud and killer say: {{kind: [codes]}} |

Runbooks and notebooks use it when no other book is named:

    tallybook runbook run stuck_leases

The airports come from the package `airportsdata` (MIT licence).
`make samples` records all of this anew.

| kind | records |
|---|---|
{kinds}
"""


def record(target: Path) -> None:
    """Run the demo and put what it left into ``target``; raises where its columns differ."""
    with TemporaryDirectory(prefix="tallybook-sample-") as aside:
        place = Folder(Path(aside).resolve() / "demo")
        outcome = demo.run(demo.Settings(JOBS, SEED, place.root, NODE), _say)
        if not outcome.holds:
            told = "; ".join(row.difference() for row in outcome.rows if not row.holds)
            raise TallybookError(f"nothing was recorded: {told}")
        _forget_machine(Layout(place.book).writer)
        Layout(place.book).wake.unlink(missing_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        _replace(place.book, target / "book")
        _replace(place.exports, target / "exports")
        _replace(place.planted, target / "planted.json")
        (target / "README.md").write_text(_readme(target, outcome.rows), "utf-8")


def _forget_machine(writer: Path) -> None:
    """A recorded book is a copy: whoever writes into it begins a new writer anyway."""
    told = json.loads(writer.read_text("utf-8"))
    forgotten = told | {"machine": "", "device": 0, "inode": 0}
    writer.write_text(json.dumps(forgotten, indent=1) + "\n", "utf-8")


def _replace(source: Path, target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def _readme(target: Path, rows: tuple[Row, ...]) -> str:
    segments = Layout(target / "book").segments()
    first = json.loads(segments[0].read_text("utf-8").partition("\n")[0])
    events = sum(path.read_bytes().count(b"\n") for path in segments)
    return README.format(
        jobs=JOBS,
        seed=SEED,
        node=NODE,
        day=first["occurred_at"][:10],
        sizes=f"{events:,} events",
        kinds="\n".join(f"| {row.kind} | {len(row.planted):,} |" for row in rows),
    )


def _say(stage: str, done: int, total: int) -> None:
    if done == total:
        sys.stderr.write(f"{stage}: {done:,} of {total:,}\n")


def main() -> int:
    """Record into the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Record the sample book")
    parser.add_argument("target", type=Path, metavar="DEST")
    try:
        record(parser.parse_args().target)
    except TallybookError as error:
        sys.stderr.write(f"record: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
