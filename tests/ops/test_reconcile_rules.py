"""Rules of columns: what counts as equal, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import polars
import pytest

from tallybook.errors import BadInput
from tallybook.ops import statements
from tallybook.ops.reconciling import Reconciliation, reconcile


def frame(**columns: list[str | None]) -> polars.DataFrame:
    return polars.DataFrame(columns, schema=dict.fromkeys(columns, polars.String))


def status(local: str | None, cloud: str | None, **rule: Any) -> str:
    """The status of the one pair whose cells are given."""
    sides = frame(id=["1"], x=[local]), frame(id=["1"], x=[cloud])
    found = reconcile(*sides, key="id", columns={"x": rule})
    return next(name for name, rows in found.statuses.items() if rows)


DAY = "2024-05-06"


@pytest.mark.parametrize(
    ("local", "cloud", "rule"),
    [
        ("Tea", "TEA", {"ignore_case": True}),
        ("\u00c4rger", "\u00e4RGER", {"ignore_case": True}),
        (" a", "a \u00a0", {"space": "trim"}),
        ("a  b", " a\u00a0b", {"space": "collapse"}),
        (" 7 ", "7", {"type": "integer", "space": "trim"}),
        ("NA", None, {"null": ["NA"]}),
        ("", None, {"null": [""]}),
        ("n/a", "-", {"type": "decimal", "null": ["n/a", "-"]}),
        ("caf\u00e9", "cafe\u0301", {"normal_form": "NFC"}),
        ("1.00", "1.01", {"type": "decimal", "tolerance": "0.01"}),
        ("10000000000000000000000000000000.01", "10000000000000000000000000000000.02",
         {"type": "decimal", "tolerance": "0.01"}),
        ("9007199254740992", "9007199254740993", {"type": "integer", "tolerance": 1}),
        ("-1", "1", {"type": "integer", "tolerance": 2}),
        ("100", "101", {"type": "integer", "relative": 0.01}),
        (f"{DAY}T10:00:00Z", f"{DAY}T10:00:00.5Z", {"type": "timestamp", "tolerance": "0.5"}),
        (f"{DAY}T10:00:00", f"{DAY}T08:00:00Z", {"type": "timestamp", "zone": "Europe/Berlin"}),
        (f"{DAY}T10:00:00.123456Z", f"{DAY}T10:00:00.123999Z",
         {"type": "timestamp", "precision": "ms"}),
        (f"{DAY}T10:00:00.9Z", f"{DAY}T10:00:00Z", {"type": "timestamp", "precision": "s"}),
        (f"{DAY}T23:59:59Z", DAY, {"type": "timestamp", "precision": "day"}),
    ],
)  # fmt: skip
def test_a_rule_makes_equal_what_it_says_and_without_it_they_differ(
    local: str, cloud: str, rule: dict[str, Any]
) -> None:
    assert status(local, cloud, **rule) == "match"
    plain = {"type": rule["type"]} if "type" in rule and "null" not in rule else {}
    assert status(local, cloud, **plain) != "match"


@pytest.mark.parametrize(
    ("local", "cloud", "rule"),
    [
        ("1.00", "1.011", {"type": "decimal", "tolerance": "0.01"}),
        ("10000000000000000000000000000000.01", "10000000000000000000000000000000.03",
         {"type": "decimal", "tolerance": "0.01"}),
        ("1" * 30 + ".1", "1" * 30 + ".2", {"type": "decimal", "tolerance": "0.000000000001"}),
        ("9007199254740992", "9007199254740994", {"type": "integer", "tolerance": 1}),
        ("100", "102", {"type": "integer", "relative": 0.01}),
        (None, "0", {"type": "integer", "tolerance": 5}),
        ("a b", "ab", {"space": "collapse"}),
        ("a  b", "a b", {"space": "trim"}),
        ("na", None, {"null": ["NA"]}),
        (f"{DAY}T10:00:00Z", f"{DAY}T10:00:00.6Z", {"type": "timestamp", "tolerance": "0.5"}),
        (f"{DAY}T10:00:00+00:00", f"{DAY}T08:00:00Z",
         {"type": "timestamp", "zone": "Europe/Berlin"}),
        (f"{DAY}T10:00:00.123Z", f"{DAY}T10:00:00.124Z", {"type": "timestamp", "precision": "ms"}),
    ],
)  # fmt: skip
def test_a_rule_makes_nothing_else_equal(local: str, cloud: str, rule: dict[str, Any]) -> None:
    assert status(local, cloud, **rule) == "differs"


def test_pairs_within_a_tolerance_are_counted_and_show_no_changed_cell() -> None:
    local, cloud = frame(id=["1", "2"], x=["1", "1"]), frame(id=["1", "2"], x=["1.5", "3"])
    rule = {"x": {"type": "decimal", "tolerance": 1}}
    found = reconcile(local, cloud, key="id", columns=rule)
    assert (found.statuses["match"], found.statuses["differs"], found.tolerated) == (1, 1, 1)
    assert found.keys("differs") == ["2"] and found.changed_cells == 1 == found.differences.height


def test_a_column_is_compared_under_its_other_name_and_an_ignored_one_not_at_all() -> None:
    local = frame(id=["1"], price=["5"], at=["x"], note=["p"])
    cloud = frame(ID=["1"], PRICE=["5.0"], at=["y"], more=["q"])
    rules = {"ID": {"rename": "id"}, "price": {"rename": "PRICE"}, "at": {"ignore": True},
             "PRICE": {"type": "decimal"}, "more": {"ignore": True}}  # fmt: skip
    found = reconcile(local, cloud, key="id", columns=rules)
    assert found.clean and found.columns_only_local == ("note",)
    assert found.columns_only_cloud == ()


def test_the_rule_of_every_column_holds_where_a_column_has_none_of_its_own() -> None:
    local = frame(id=["1"], a=[" A"], b=["1.0"], c=["x "])
    cloud = frame(id=["1"], a=["a"], b=["1"], c=["x"])
    rules = {"*": {"ignore_case": True, "space": "trim"}, "b": {"type": "decimal"}}
    assert reconcile(local, cloud, key="id", columns=rules).clean


def test_a_rule_of_the_key_pairs_keys_that_are_written_otherwise() -> None:
    local, cloud = frame(id=["A ", "NA", "b"]), frame(id=["a", None, "B"])
    rules = {"id": {"ignore_case": True, "space": "trim", "null": ["NA"]}}
    found = reconcile(local, cloud, key="id", columns=rules)
    assert found.statuses["match"] == 2
    assert found.statuses["null_key_local"] == found.statuses["null_key_cloud"] == 1


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"prize": {"type": "decimal"}}, "column 'prize', and neither side has it.*'price'"),
        ({"price": {"tolerance": 1}}, "tolerance does not go with the type text; give it one of"),
        ({"price": {"type": "decimal", "ignore_case": True}}, "ignore case does not go with"),
        ({"price": {"type": "decimal", "zone": "UTC"}}, "zone does not go with .* timestamp"),
        ({"price": {"ignore": True, "space": "trim"}}, "is ignored and has space too; say one"),
        ({"price": {"tolerance": -1, "type": "decimal"}}, "tolerance -1 is no number from 0 up"),
        ({"price": {"tolerance": "much", "type": "decimal"}}, "'much' is no number"),
        ({"price": {"zone": "Mars", "type": "timestamp"}}, "zone 'Mars' is no time zone"),
        ({"price": {"tolerence": 1}}, "no rule 'tolerence'; the nearest is 'tolerance'"),
        ({"price": {"null": 5}}, "null 5 is no list of texts"),
        ({"id": {"ignore": True}}, "'id' is the key and cannot be ignored"),
        ({"id": {"type": "integer", "tolerance": 1}}, "'id' is the key.*takes no tolerance"),
        ({"price": {"rename": "prise"}}, "compared with 'prise'.*no such column.*'price'"),
        ({"price": {"rename": "id"}, "note": {"rename": "id"}}, "with both 'note' and 'price'"),
        ({"*": {"rename": "x"}}, "every column .* cannot rename"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_are_refused_in_one_sentence(
    rules: dict[str, dict[str, Any]], words: str
) -> None:
    local = cloud = frame(id=["1"], price=["5"], note=["p"])
    with pytest.raises(BadInput, match=words) as refused:
        reconcile(local, cloud, key="id", columns=rules)
    assert "\n" not in str(refused.value)


def test_rules_of_one_column_under_both_its_names_must_agree() -> None:
    local, cloud = frame(id=["1"], a=["5"]), frame(id=["1"], b=["5"])
    rules = {"a": {"rename": "b", "type": "decimal"}, "b": {"type": "integer"}}
    with pytest.raises(BadInput, match=r"'a' and 'b' are compared with each other.*contradict"):
        reconcile(local, cloud, key="id", columns=rules)


def warned(found: Reconciliation, *words: str) -> bool:
    return any(all(word in warning for word in words) for warning in found.warnings)


def test_a_column_under_another_name_is_told_by_its_name_or_its_cells() -> None:
    local = frame(id=["1", "2"], price=["5", "6"], city=["Rome", "Oslo"], left=["x", "y"])
    cloud = frame(id=["1", "2"], Price_=["7", "8"], town=["Rome", "Oslo"], right=["p", "q"])
    found = reconcile(local, cloud, key="id")
    assert warned(found, "'Price_'", "'price'", "--rename Price_=price")
    spaced = reconcile(local, cloud.rename({"Price_": "Pri ce"}), key="id")
    assert warned(spaced, "compare them with --rename 'Pri ce=price'")
    assert warned(found, "'town'", "'city'", "2 of 2 rows")
    assert not warned(found, "'right'")
    assert found.columns_only_local == ("price", "city", "left"), "they are still reported"


def test_keys_that_would_meet_under_a_rule_are_said_to() -> None:
    found = reconcile(frame(id=["A1", "B2"]), frame(id=["a1 ", "b2 "]), key="id")
    assert found.apart.startswith("no key is on both sides") and found.warnings[0] == found.apart
    assert not warned(found, "would be")
    assert warned(reconcile(frame(id=["A1"]), frame(id=["a1"]), key="id"), "with ignore case")
    assert warned(reconcile(frame(id=["007"]), frame(id=["7"]), key="id"), "type integer")


WRITTEN = {
    "timestamp": ["2026-09-03T06:23:56Z", "2024-02-29 23:59:59Z", "2023-02-29T00:00:00Z",
                  "2026-09-03T06:23:56.120+02:00", "1969-12-31T00:00:60Z", "2026-09-03T06:23:5Z ",
                  "\t2026-09-3T06:23:56Z"],
    "decimal": ["-120.50", "0.0", "1e2", "12345678901234567890.10", ".5"],
    "integer": ["-120", "007", "1e2", "9223372036854775808", "5.0"],
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITTEN)
def test_the_quick_road_to_a_value_gives_what_the_careful_one_gives(kind: str) -> None:
    """Of texts with one or two letters changed, left out or put in, most are no value any more."""
    dice, texts = random.Random(kind), set(WRITTEN[kind])  # noqa: S311 - the same each time
    for _ in range(6000):
        text = list(dice.choice(WRITTEN[kind]))
        for _ in range(dice.randint(1, 2)):
            at = dice.randrange(len(text))
            text[at : at + dice.randint(0, 1)] = dice.choice([*" 09-TZ.\t", ""])
            text = list("".join(text)) or ["0"]
        texts.add("".join(text))
    given = polars.DataFrame({"text": sorted(texts)})
    with duckdb.connect() as connection:
        connection.execute("load icu; set TimeZone = 'UTC'")
        for macros in ("typing_cells", "comparing_cells"):
            connection.execute(statements.model(macros))
        connection.register("given", given)
        other = f"quick_{kind}(text) is distinct from {kind}_text(text)"
        assert connection.table("given").filter(other).fetchall() == []
