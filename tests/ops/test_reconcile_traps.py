"""Every trap of a comparison, planted fifty times in a table of 100,000 rows, comes out right."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import polars
import pytest

from tallybook.ops.reconciling import Reconciliation, reconcile

ROWS, TIMES = 100_000, 50
TYPES = {"amount": "decimal", "count": "integer", "at": "timestamp"}
COLUMNS = ["id", "amount", "count", "at", "text"]
AT = "2026-11-30T"

# trap: column, cell of the local side, cell of the cloud side, equal or not; None is null
EQUAL, DIFFERS = "match", "differs"
TRAPS: dict[str, tuple[str, str | None, str | None, str]] = {
    "a zero at the end": ("amount", "0.12", "0.120", EQUAL),
    "a dropped zero": ("amount", "7.50", "7.5", EQUAL),
    "minus zero": ("amount", "-0", "0", EQUAL),
    "a plus": ("amount", "+5", "5", EQUAL),
    "an exponent": ("amount", "1e0", "1", EQUAL),
    "a fraction of an integer": ("count", "5.0", "5", EQUAL),
    "the seventeenth digit": ("amount", "10000000000000.0001", "10000000000000.0002", DIFFERS),
    "the 38th digit": ("amount", "9" * 37 + "1", "9" * 37 + "2", DIFFERS),
    "beyond 2^53": ("count", "9007199254740992", "9007199254740993", DIFFERS),
    "an offset": ("at", f"{AT}10:00:00+02:00", f"{AT}08:00:00Z", EQUAL),
    "T or a space": ("at", f"{AT}08:00:00Z", "2026-11-30 08:00:00Z", EQUAL),
    "a zero of a fraction": ("at", f"{AT}08:00:00.120Z", f"{AT}08:00:00.12Z", EQUAL),
    "a millisecond": ("at", f"{AT}08:00:00.120Z", f"{AT}08:00:00.121Z", DIFFERS),
    "zeros before": ("text", "007", "7", DIFFERS),
    "a space at the end": ("text", "a ", "a", DIFFERS),
    "case": ("text", "Tea", "tea", DIFFERS),
    "NFC and NFD": ("text", "caf\u00e9", "cafe\u0301", DIFFERS),
    "NA and empty": ("text", "NA", "", DIFFERS),
    "a word for null": ("text", "null", None, DIFFERS),
    "null and empty": ("text", None, "", DIFFERS),
    "null and null": ("text", None, None, EQUAL),
    "a newline in quotes": ("text", "a\nb", "a\nb", EQUAL),
    "a comma in quotes": ("text", "a,b", "a,b", EQUAL),
    "a quote in quotes": ("text", 'a"b', 'a"b', EQUAL),
}
Row = dict[str, str | None]


def plain(number: int) -> Row:
    return {"id": f"k{number:06}", "amount": f"{number % 977}.{number % 89 + 10}",
            "count": str(number * 7), "at": f"{AT}{number % 24:02}:{number % 60:02}:00Z",
            "text": f"word {number}"}  # fmt: skip


class Planted:
    """Two tables and what must be said of the keys of each trap."""

    def __init__(self) -> None:
        dice = random.Random(8)  # noqa: S311 - planted at places that a seed gives
        spots = iter(dice.sample(range(ROWS), TIMES * (len(TRAPS) + 5)))
        self.local = [plain(n) for n in range(ROWS)]
        self.cloud = [dict(row) for row in self.local]
        self.keys: dict[str, set[str]] = {}
        for trap, (column, local, cloud, _) in TRAPS.items():
            self.keys[trap] = {self._set(next(spots), column, local, cloud) for _ in range(TIMES)}
        for trap, change in (("same", {}), ("other", {"text": "another"})):
            places = [next(spots) for _ in range(TIMES)]
            self.local += [self.local[place] | change for place in places]
            self.keys[f"a duplicate of {trap} content"] = {f"k{n:06}" for n in places}
        for place in [next(spots) for _ in range(TIMES)]:
            self.local[place] = self.local[place] | {"id": None}
            self.cloud[place] = self.cloud[place] | {"id": None}
        gone = [next(spots) for _ in range(TIMES)]
        self.keys["gone"] = {f"k{n:06}" for n in gone}
        self.bad = next(spots)
        self.cloud[self.bad]["amount"] = "n/a"
        self.cloud = [row for n, row in enumerate(self.cloud) if n not in set(gone)]
        dice.shuffle(self.cloud)

    def _set(self, place: int, column: str, local: str | None, cloud: str | None) -> str:
        self.local[place][column], self.cloud[place][column] = local, cloud
        return str(self.local[place]["id"])


def write_csv(path: Path, rows: list[Row]) -> Path:
    """CSV in which null is an empty cell and the empty text a quoted one."""
    frame = polars.DataFrame(rows, schema=dict.fromkeys(COLUMNS, polars.String))
    quoted = [
        polars.when(polars.col(c).is_null()).then(polars.lit(""))
        .otherwise('"' + polars.col(c).str.replace_all('"', '""', literal=True) + '"')
        for c in COLUMNS
    ]  # fmt: skip
    lines = frame.select(polars.concat_str(quoted, separator=","))
    path.write_text("\n".join([",".join(COLUMNS), *lines.to_series(), ""]), "utf-8")
    return path


@pytest.fixture(scope="module")
def planted() -> Planted:
    return Planted()


@pytest.fixture(scope="module")
def found(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Reconciliation:
    folder = tmp_path_factory.mktemp("traps")
    left, right = folder / "local.csv", folder / "cloud.csv"
    return reconcile(write_csv(left, planted.local), write_csv(right, planted.cloud), key="id",
                     types=TYPES)  # fmt: skip


@pytest.mark.parametrize("trap", TRAPS)
def test_the_trap_comes_out_right(planted: Planted, found: Reconciliation, trap: str) -> None:
    column, local, cloud, right = TRAPS[trap]
    keys = planted.keys[trap]
    assert len(keys) == TIMES
    said = found.differences.filter(polars.col("key").is_in(list(keys)))
    if right == EQUAL:
        assert said.is_empty() and not keys & set(found.rows["key"])
    else:
        assert set(said["key"]) == keys and said.height == TIMES
        assert set(said.select("column", "local", "cloud").rows()) == {(column, local, cloud)}


def test_duplicates_are_listed_on_their_own_side_whatever_they_hold(
    planted: Planted, found: Reconciliation
) -> None:
    twice = {key for trap, keys in planted.keys.items() if "duplicate" in trap for key in keys}
    assert set(found.keys("duplicate_local")) == twice == set(found.keys("duplicate_cloud"))
    assert found.statuses["duplicate_local"] == 2 * len(twice) == 4 * TIMES
    assert found.statuses["duplicate_cloud"] == len(twice)


def test_null_keys_have_a_status_of_their_own_and_meet_nothing(found: Reconciliation) -> None:
    assert found.statuses["null_key_local"] == TIMES == found.statuses["null_key_cloud"]


def test_one_bad_cell_makes_its_row_alone_unreadable(
    planted: Planted, found: Reconciliation
) -> None:
    assert found.keys("unreadable_cloud") == [f"k{planted.bad:06}"]
    assert found.unreadable.select("side", "column", "text").rows() == [("cloud", "amount", "n/a")]


def test_nothing_else_is_said_and_both_sums_hold(planted: Planted, found: Reconciliation) -> None:
    statuses = found.statuses
    differing = sum(TIMES for *_, right in TRAPS.values() if right == DIFFERS)
    assert statuses["differs"] == differing == found.changed_cells
    assert set(found.keys("only_local")) == planted.keys["gone"] and not statuses["only_cloud"]
    assert found.rows_local == len(planted.local) and found.rows_cloud == len(planted.cloud)
    ends = Counter(name.rpartition("_")[2] for name, rows in statuses.items() for _ in range(rows))
    shared = statuses["match"] + statuses["differs"]
    assert (shared + ends["local"], shared + ends["cloud"]) == (found.rows_local, found.rows_cloud)
