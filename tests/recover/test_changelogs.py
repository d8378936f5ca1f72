"""Change logs of other systems fold to a cache through a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tallybook.cli.main import main

SHOP = {"db": "shop", "table": "tea"}


def debezium(op: str, before: Any, after: Any, at: int = 0, *, wrapped: bool = False) -> str:
    change = {"before": before, "after": after, "op": op, "source": SHOP | {"ts_ms": at}}
    return json.dumps({"schema": {}, "payload": change} if wrapped else change)


def maxwell(kind: str, data: Any, **more: Any) -> str:
    head = {"database": "shop", "table": "tea", "type": kind, "ts": 1_700_000_000}
    return json.dumps(head | {"data": data, "primary_key_columns": ["id"]} | more)


def folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], *words: str
) -> tuple[int, Any, dict[str, Any]]:
    """The code, the answer and the cache of a change log."""
    (tmp_path / "changes").write_text("\n".join(lines) + "\n")
    source, out = str(tmp_path / "changes"), tmp_path / "out"
    code = main(["cache", "rebuild", "--from", source, "--out", str(out), "--json", *words])
    told = json.loads(capsys.readouterr().out)
    rows = [json.loads(line) for line in (out / "cache.ndjson").read_text().splitlines()]
    return code, told, {row["key"]: row["value"] for row in rows}


@pytest.mark.parametrize("wrapped", [False, True])
def test_debezium_inserts_updates_deletes_and_added_columns_fold_to_the_rows_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], wrapped: bool
) -> None:
    one, two = {"id": 1, "name": "oolong"}, {"id": 2, "name": "sencha"}
    changed = two | {"name": "gyokuro", "grams": 80}
    lines = [
        debezium("r", None, one, 1000, wrapped=wrapped),
        debezium("c", None, two, 2000, wrapped=wrapped),
        debezium("u", two, changed, 3000, wrapped=wrapped),
        debezium("d", one, None, 4000, wrapped=wrapped),
        "null",
    ]
    words = ("--profile", "debezium", "--key", "id")
    code, told, cache = folded(tmp_path, capsys, lines, *words)
    assert (code, cache) == (0, {"shop.tea/2": changed})
    assert (told["put"], told["invalidated"], told["skipped"]) == (3, 1, 1)
    assert (told["first_at"], told["last_at"]) == (
        "1970-01-01T00:00:01.000000Z",
        "1970-01-01T00:00:04.000000Z",
    )
    again = folded(tmp_path, capsys, lines + lines, *words)
    assert again[1]["parity"] == told["parity"]


def test_maxwell_names_its_key_columns_and_what_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "# written by hand",
        maxwell("bootstrap-start", {}),
        maxwell("insert", {"id": 1, "name": "oolong"}),
        maxwell("insert", {"id": 2, "name": "sencha"}),
        maxwell("update", {"id": 3, "name": "oolong"}, old={"id": 1}),
        maxwell("delete", {"id": 2, "name": "sencha"}),
    ]
    code, told, cache = folded(tmp_path, capsys, lines, "--profile", "maxwell")
    assert (code, cache) == (0, {"shop.tea/3": {"id": 3, "name": "oolong"}})
    assert told["tables"] == {"shop.tea": 4}


def test_a_cell_that_was_not_sent_is_taken_from_the_row_before_else_the_key_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unsent = "__debezium_unavailable_value"
    lines = [
        debezium("c", None, {"id": 1, "text": "long"}),
        debezium("u", None, {"id": 1, "text": unsent, "n": 2}),
        debezium("u", None, {"id": 2, "text": unsent}),
    ]
    words = ("--profile", "debezium", "--key", "id")
    code, told, cache = folded(tmp_path, capsys, lines, *words)
    assert cache["shop.tea/1"] == {"id": 1, "text": "long", "n": 2}
    assert (code, told["unknown"]) == (4, ["shop.tea/2"])


def test_a_line_that_is_no_change_is_named_and_takes_nothing_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        debezium("c", None, {"id": 1}),
        "{torn",
        debezium("x", None, {"id": 1}),
        debezium("c", None, {"name": "no key"}),
        "[]",
        debezium("c", None, {"id": 2}),
        debezium("c", None, {"id": 3}).replace('"id": 3', '"id": 3, "id": 4'),
    ]
    words = ("--profile", "debezium", "--key", "id")
    code, told, cache = folded(tmp_path, capsys, lines, *words)
    assert (code, sorted(cache)) == (4, ["shop.tea/1", "shop.tea/2"])
    reasons = [(bad["line"], bad["reason"]) for bad in told["bad"]]
    assert [line for line, _ in reasons] == [2, 3, 4, 5, 7]
    assert reasons[4][1] == "a name stands twice: 'id'"
    assert "op 'x' is not in the profile" in reasons[1][1]
    assert "no key column id" in reasons[2][1]
    assert main(["cache", "rebuild", "--from", str(tmp_path / "changes"), *words]) == 4
    assert "line 3: op 'x'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "no profile 'mine.toml': name a TOML file, or one of debezium, maxwell"),
        ("operation = [", "not valid TOML"),
        ('operation = "op"', "give value"),
        ('operation = "op"\nvalue = "after"\nput = ["c"]\ncolour = "red"', "'colour' is no"),
        ('operation = 3\nvalue = "after"\nput = ["c"]', "operation must be a str"),
    ],
)
def test_a_profile_that_cannot_be_used_is_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("changes").write_text("null\n")
    if text is not None:
        Path("mine.toml").write_text(text)
    assert main(["cache", "rebuild", "--from", "changes", "--profile", "mine.toml"]) == 2
    assert told in capsys.readouterr().err
