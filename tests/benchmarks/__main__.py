"""``make bench``: every figure as a ratio to a baseline that ran beside it.

    python -m tests.benchmarks [--full] [SUBJECT …]

Prints a table and writes ``build/bench.json``. A subject is a module ``bench_<subject>.py`` with
``measure(full: bool)`` that yields rows.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
OUT = Path("build") / "bench.json"


def main() -> int:
    """Run the subjects asked for, or all."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("subjects", nargs="*")
    args = parser.parse_args()
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = set(args.subjects) - set(known)
    if unknown:
        parser.error(f"no subject {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    print(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}")
    rows = []
    for subject in args.subjects or known:
        for row in import_module(f"tests.benchmarks.bench_{subject}").measure(args.full):
            print(row.line(), flush=True)
            rows.append(row)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps([row.as_json() for row in rows], indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
