"""Peers of ``bench_reconcile`` that do not go with what ours needs, or that nothing else needs.

Each is a short program that uv runs in an environment of its own. It prints the seconds from the
files to what differs; what it imports is not counted.
"""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.benchmarks.reconciles import read

_UV: Final = Path(".uv/bin/uv")
_TIMED: Final = """
import sys, time
left, right = sys.argv[1:]
{imported}
start = time.perf_counter()
{timed}
print(time.perf_counter() - start)
"""

# what it needs, what it imports, what is timed
_PEERS: Final = {
    "datacompy": (
        ("datacompy", "polars<2"),
        "import datacompy, polars\n" + inspect.getsource(read),
        'datacompy.PolarsCompare(read(left), read(right), join_columns="id").report()',
    ),
    "pandas merge": (
        ("pandas", "pyarrow"),
        """
import pandas
def read(path):
    is_csv = path.endswith(".csv")
    frame = pandas.read_csv(path, dtype=str) if is_csv else pandas.read_parquet(path)
    for name in ("quantity", "score"):
        frame[name] = frame[name].astype("Int64")
    frame["price"] = frame["price"].astype(float)
    frame["changed_at"] = pandas.to_datetime(frame["changed_at"], utc=True)
    return frame""",
        """
both = read(left).merge(read(right), on="id", how="outer", indicator=True)
for name in [name[:-2] for name in both.columns if name.endswith("_x")]:
    one, other = both[name + "_x"], both[name + "_y"]
    (((one != other) & ~(one.isna() & other.isna())) | (one.isna() != other.isna())).sum()""",
    ),
    "csv-diff": (
        ("csv-diff",),
        "from csv_diff import compare, load_csv",
        'compare(*(load_csv(open(path, newline=""), key="id") for path in (left, right)))',
    ),
    "csvdiff": (
        ("csvdiff",),
        "import csvdiff",
        'csvdiff.diff_files(left, right, ["id"])',
    ),
    "SQLite, except both ways": (
        (),
        "import csv, sqlite3",
        """
base = sqlite3.connect(":memory:")
for name, path in (("one", left), ("other", right)):
    rows = csv.reader(open(path, newline=""))
    columns = next(rows)
    base.execute(f"create table {name} ({', '.join(columns)})")
    base.executemany(f"insert into {name} values ({', '.join('?' * len(columns))})", rows)
base.execute("select * from one except select * from other").fetchall()
base.execute("select * from other except select * from one").fetchall()""",
    ),
}
READ_PARQUET: Final = ("datacompy", "pandas merge")
ALL: Final = tuple(_PEERS)
SLOW: Final = tuple(peer for peer in _PEERS if peer != "datacompy")


def is_there(peer: str) -> bool:
    """Whether uv can make the environment of a peer: without network it may not."""
    made = subprocess.run([*_python(peer), "-c", "pass"], check=False, capture_output=True)
    if made.returncode:
        print(f"{peer}: not measured, its packages cannot be had here", file=sys.stderr)
    return not made.returncode


def seconds(folder: Path, left: str, right: str, peer: str, **_: object) -> float:
    """Seconds of one of these peers."""
    _, imported, timed = _PEERS[peer]
    program = _TIMED.format(imported=imported, timed=timed)
    command = [*_python(peer), "-c", program, left, right]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _python(peer: str) -> list[str]:
    uv = str(_UV) if _UV.exists() else shutil.which("uv") or "uv"
    given = [word for needed in _PEERS[peer][0] for word in ("--with", needed)]
    return [
        uv,
        "run",
        "--quiet",
        "--no-project",
        "--isolated",
        "--python",
        "3.11",
        *given,
        "python",
    ]
