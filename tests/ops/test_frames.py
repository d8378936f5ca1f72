"""Frames as tables of a notebook."""

from __future__ import annotations

import re

import polars

from tallybook.ops import frames
from tallybook.runbook.tables import safe_html


def test_only_a_text_of_more_than_60_characters_takes_several_lines() -> None:
    texts = ["01a22a07-2e65-763c-aef7-fee4deae0826", "w & " * 15, "word & " * 20]
    with polars.Config(fmt_str_lengths=120):
        shown = frames.html(polars.DataFrame({"told": texts, "n": [1, 2, 3]}))
    long = re.findall(r'<td class="long"><section>([^<]*)</section></td>', shown)
    assert len(long) == 1
    assert long[0].startswith("&quot;word &amp; word")
    assert shown.count("<td>") == 2 + 5


def test_a_report_has_the_table_that_polars_makes() -> None:
    frame = polars.DataFrame({"told": ["s", "word & " * 12], "n": [1, 2]})
    with polars.Config(fmt_str_lengths=120):
        ours, theirs = safe_html(frames.html(frame)), safe_html(frame._repr_html_())
    assert ours == f"<div>{theirs}</div>"
