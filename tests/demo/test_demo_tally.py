from __future__ import annotations

import re

from tallybook.demo import folder, page
from tallybook.demo.tally import KINDS, tally

PLANTED = {kind: ["KJFK", "00AA"] for kind in KINDS}
FOUND = [(kind, ["airport-KJFK", "00AA", "KJFK"]) for kind in KINDS]


def test_equal_sets_hold_whatever_their_order_and_however_a_finding_names_a_record():
    rows = tally(PLANTED, FOUND)
    assert [row.kind for row in rows] == list(KINDS)
    assert all(row.holds and not row.difference() for row in rows)
    assert rows[0].planted == ("00AA", "KJFK")


def test_a_kind_that_nobody_found_differs_and_is_named():
    rows = tally(PLANTED, [one for one in FOUND if one[0] != "dead"])
    assert [row.difference() for row in rows if not row.holds] == [
        "dead: planted, not found: 00AA, KJFK"
    ]


def test_a_record_too_many_differs_and_is_named():
    rows = tally(PLANTED, [*FOUND, ("extra", ["X-1"])])
    assert [row.difference() for row in rows if not row.holds] == ["extra: found, not planted: X-1"]


def test_an_empty_kind_never_holds():
    rows = tally(PLANTED | {"dead": []}, [one for one in FOUND if one[0] != "dead"])
    assert [row.kind for row in rows if not row.holds] == ["dead"]


def test_a_kind_outside_the_ten_changes_nothing():
    assert tally(PLANTED, [*FOUND, ("open_jobs", ["KJFK"])]) == tally(PLANTED, FOUND)


def test_the_page_shows_every_kind_and_lets_nothing_in(tmp_path):
    with folder.fresh(tmp_path / "demo", {}) as place:
        pass
    rows = tally(PLANTED, [*FOUND, ("extra", ["<script>alert(1)</script>"])])
    report = place.out / "reports" / "a b&c" / "report.html"
    answer = {"report": str(report), "runbook": "reconcile", "findings": []}
    page.write(place, rows, [answer])
    text = place.report.read_text("utf-8")
    assert set(KINDS) <= set(re.findall(r'scope="row">(\w+)<', text))
    assert "<script" not in text
    assert "default-src 'none'" in text
    assert 'href="out/reports/a%20b%26c/report.html"' in text
    assert not re.search(r"""(src|href)=["']?(https?:|//)""", text)
