"""The page: what came out of a cell is shown, and nothing in it acts or leaves the page."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tallybook.runbook.answers import MIME
from tallybook.runbook.drawing import safe_svg
from tallybook.runbook.report import Header, render
from tallybook.runbook.tables import safe_html

NASTY = "</p><script>alert(1)</script><img src=x onerror=alert(1)>"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '


def page(*cells: dict[str, Any], **changed: Any) -> str:
    header: dict[str, Any] = {
        "name": "small",
        "status": "findings",
        "message": "",
        "facts": [("book", "b")],
        "parameters": [("n", "3", "how many")],
        "findings": [],
        "provenance": [("versions", "v")],
    }
    whole = render(Header(**{**header, **changed}), cells)
    body, script, end = whole.rpartition("<script>")
    assert script and end.endswith("</script>\n</body>\n</html>\n")
    return body


def shown(data: dict[str, Any]) -> str:
    output = {"output_type": "display_data", "data": data, "metadata": {}}
    return page({"cell_type": "code", "source": "x", "outputs": [output]})


def tags(text: str) -> set[str]:
    return set(re.findall(r"<([a-zA-Z]+)", text.partition("</head>")[2]))


def test_text_from_everywhere_is_escaped() -> None:
    finding = {
        "severity": NASTY,
        "title": NASTY,
        "evidence": NASTY,
        "ids": [NASTY],
        "action": NASTY,
    }
    error = {"output_type": "error", "ename": NASTY, "evalue": NASTY, "traceback": [NASTY]}
    stream = {"output_type": "stream", "name": "stdout", "text": [NASTY]}
    html = {"output_type": "display_data", "data": {"text/html": NASTY}}
    made = page(
        {"cell_type": "markdown", "source": f"# {NASTY}\n\n{NASTY}\n\n[a](javascript:alert(1))"},
        {"cell_type": "markdown", "source": NASTY},
        {"cell_type": "code", "source": NASTY, "outputs": [error, stream, html]},
        name=NASTY,
        message=NASTY,
        facts=[(NASTY, NASTY)],
        parameters=[(NASTY, NASTY, NASTY)],
        findings=[finding],
        provenance=[(NASTY, NASTY)],
    )
    assert not tags(made) & {"script", "img", "a", "iframe"}
    assert made.count("<style>") == 1


def test_hostile_strings_of_data_are_shown_as_text() -> None:
    hostile = (
        "=cmd|'/C calc'!A0 \x1b]0;title\x07 \x1b[31mred\x1b[0m \u202egnp\u2069 \ud800 a\r\nb\tc"
    )
    seen = r"=cmd|&#x27;/C calc&#x27;!A0 \x1b]0;title\x07 red \u202egnp\u2069 \ud800 a" + "\nb\tc"
    stream = {"output_type": "stream", "name": "stdout", "text": hostile}
    html = {"output_type": "display_data", "data": {"text/html": hostile.replace("'", "&#x27;")}}
    svg = {"output_type": "display_data", "data": {"image/svg+xml": SVG + ">\u202egnp</svg>"}}
    made = page({"cell_type": "code", "source": "x", "outputs": [stream, html, svg]})
    assert made.count(seen) == 2
    assert r">\u202egnp</svg>" in made
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", made)
    assert seen in page(findings=[{"severity": "info", "title": hostile}])


def test_a_widget_is_told_as_one_and_not_by_its_insides() -> None:
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "7"}}
    shown = {"output_type": "display_data", "data": {**view, "text/plain": "VBox(children=())"}}
    made = page({"cell_type": "code", "source": "x", "outputs": [shown]})
    assert "look at it in <code>tallybook lab</code>" in made
    assert "VBox" not in made


def test_the_policy_allows_one_stylesheet_and_nothing_from_outside() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page())
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.search(r"https?:", page())


def test_findings_come_before_the_notebook_and_ids_past_a_dozen_are_folded() -> None:
    finding = {"severity": "problem", "title": "Bad", "ids": [f"id-{n}" for n in range(20)]}
    made = page({"cell_type": "code", "source": "the_code", "outputs": []}, findings=[finding])
    assert made.index("Bad") < made.index("the_code")
    assert "<summary>8 more</summary>" in made


def test_the_answer_at_the_end_is_left_out_where_its_findings_stand_at_the_top() -> None:
    output = {"output_type": "execute_result", "data": {MIME: {}, "text/html": "x"}}
    cells = (
        {"cell_type": "code", "source": "the_code"},
        {"cell_type": "markdown", "source": "## Answer"},
        {"cell_type": "code", "source": "answer(found)", "outputs": [output]},
    )
    with_findings = page(*cells, findings=[{"severity": "info", "title": "One"}])
    assert "the_code" in with_findings
    assert "Answer" not in with_findings and "answer(found)" not in with_findings
    assert "answer(found)" in page(*cells)


def test_findings_and_notes_are_counted_apart_and_ids_stay_whole() -> None:
    found = [{"severity": kind, "title": kind, "ids": ["a-b"]} for kind in ("problem", "info")]
    made = page(findings=[*found, found[1]])
    assert "1 finding, 2 notes" in made
    assert '<span class="id">a-b</span>' in made


def test_code_is_folded_and_parameter_cells_are_not_repeated() -> None:
    cells = [
        {"cell_type": "code", "source": f"secret_{tag}", "metadata": {"tags": [tag]}}
        for tag in ("parameters", "injected-parameters")
    ]
    made = page(*cells, {"cell_type": "code", "source": ["the_", "code"]})
    assert "<summary>code</summary><pre>the_code</pre>" in made
    assert "secret_" not in made


def test_a_polars_table_keeps_every_value_and_loses_its_quotes_and_style() -> None:
    import polars as pl

    frame = pl.DataFrame({"id": ["a<b>", None, "null"], "n": [1, 20, None]})
    made = safe_html(frame._repr_html_())
    assert "<style" not in made and "dataframe" not in made
    assert "<td>a&lt;b&gt;</td>" in made
    assert '<td class="number">20</td>' in made
    assert made.count('<span class="null">null</span>') == 2
    assert "<td>null</td>" in made
    assert '<th>id</th><th class="number">n</th>' in made


@pytest.mark.parametrize(("columns", "named"), [(10, False), (11, True)])
def test_a_cell_of_a_table_wider_than_a_page_has_the_name_of_its_column(
    columns: int, named: bool
) -> None:
    heads = ['a"><script>', *(f"c{number}" for number in range(1, columns))]
    import polars

    frame = polars.DataFrame({head: [number, 2] for number, head in enumerate(heads)})
    with polars.Config(fmt_str_lengths=100):
        made = safe_html(frame.with_columns(c1=polars.lit("x" * 80))._repr_html_())
    assert ("data-name" in made) is named
    assert made.count(' data-name="a&quot;&gt;&lt;script&gt;"') == 2 * named
    assert ('<td class="number" data-name="c9">9</td>' in made) is named
    assert '<td class="long"' in made and "<script" not in made


@pytest.mark.parametrize(
    "text",
    [
        "<script>1</script>",
        "<style>*{}</style>",
        "<a href='javascript:1'>",
        "<td onclick=1>",
        "<iframe srcdoc=x></iframe>",
        "<svg onload=alert(1)><script>1</script></svg>",
        "<table style='position:fixed'><tr><td colspan='x onclick=1'>",
        "<img src='http://x'>",
        "<p><form action=x><input autofocus onfocus=alert(1)>",
        "<math><mi//xlink:href='data:x,<script>'>",
        "<template><p onclick=1>x</template>",
        "<!-- --><p class='a' id='findings'>",
    ],
)
def test_html_of_a_cell_keeps_structure_only(text: str) -> None:
    made = safe_html(text)
    assert not re.search(r"<[^>]*(on\w+=|script|style|href|src|form|input|svg|id=|template)", made)


def test_html_that_is_left_open_is_closed() -> None:
    assert safe_html("<div><table><tr><td>1") == "<div><table><tr><td>1</td></tr></table></div>"
    assert safe_html("</div></div>x") == "x"


def test_words_beside_what_is_left_out_are_kept() -> None:
    assert safe_html("a <a href='x'>link</a> b") == "a link b"


def test_a_drawing_keeps_its_marks_and_its_own_references() -> None:
    made = safe_svg(
        SVG + 'width="4" height="2"><defs><clipPath id="c0"><rect width="1" height="1"/></clipPath>'
        '</defs><g clip-path="url(#c0)"><path d="M0,0L1,1" fill="#123"/><text>a&amp;b</text>'
        '<use xlink:href="#c0"/></g></svg>',
        "c1-",
    )
    assert made
    assert 'id="c1-c0"' in made and "url(#c1-c0)" in made and 'href="#c1-c0"' in made
    assert 'd="M0,0L1,1"' in made and "a&amp;b" in made and 'viewBox="0 0 4 2"' in made


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        "<foreignObject><p>x</p></foreignObject>",
        '<path onclick="alert(1)"/>',
        '<path style="fill:url(http://x)"/>',
        '<path fill="url(http://x/y)"/>',
        '<use xlink:href="http://x"/>',
        '<image href="http://x"/>',
        '<a xlink:href="javascript:alert(1)"><text>x</text></a>',
        "<style>@import 'http://x'</style>",
        '<animate attributeName="href" to="javascript:1"/>',
        "<!-- x --><?php x ?>",
    ],
)
def test_a_drawing_loses_what_could_act_or_call_out(inside: str) -> None:
    made = safe_svg(f"{SVG}>{inside}</svg>", "c-")
    assert made
    body = made.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"http|script|foreign|onclick|style|<a|animate|image|php|!--", body)


@pytest.mark.parametrize(
    "text", ["", "<svg", "<p/>", '<!DOCTYPE a [<!ENTITY b "c">]><svg>&b;</svg>', "not xml"]
)
def test_what_is_no_drawing_is_refused(text: str) -> None:
    assert safe_svg(text, "c-") is None


def test_two_drawings_of_one_page_do_not_share_ids() -> None:
    drawing = SVG + '><defs><clipPath id="clip0"/></defs></svg>'
    output = {"output_type": "display_data", "data": {"image/svg+xml": [drawing]}}
    made = page({"cell_type": "code", "source": "x", "outputs": [output, output]})
    ids = re.findall(r'id="(c\d-clip0)"', made)
    assert len(ids) == len(set(ids)) == 2


def test_a_chart_is_drawn_before_its_text_form() -> None:
    made = shown({"image/svg+xml": SVG + '><rect id="m"/></svg>', "text/plain": "Chart"})
    assert "<rect" in made and "Chart" not in made


def test_a_picture_is_inside_the_page_or_not_there() -> None:
    assert 'src="data:image/png;base64,aGk="' in shown({"image/png": "aGk=\n"})
    assert "<img" not in shown({"image/png": '" onerror="x', "text/plain": "y"})


def test_terminal_colours_are_taken_out() -> None:
    output = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[0;31mred"]}
    made = page({"cell_type": "code", "source": "x", "outputs": [output]})
    assert "\x1b" not in made and "red" in made


def test_an_unanswered_run_says_so_and_shows_why() -> None:
    made = page(status="failed", message="cell 4 failed: KeyError: 'x'")
    assert "The run gave no answer." in made
    assert "cell 4 failed: KeyError: &#x27;x&#x27;" in made


def test_graver_findings_come_first() -> None:
    found = [{"severity": one, "title": f"a {one} one"} for one in ("info", "problem", "warning")]
    made = page(findings=found)
    assert made.index("a problem one") < made.index("a warning one") < made.index("a info one")


def test_a_table_of_one_wide_row_stands_upright() -> None:
    import polars as pl

    frame = pl.DataFrame({"a": ["x"], "b": [1], "c": [2], "d": [3], "e": [None]})
    made = safe_html(frame._repr_html_())
    assert "<tr><th>a</th><td>x</td></tr><tr><th>b</th><td>1</td></tr>" in made
    assert '<td><span class="null">null</span></td></tr></tbody>' in made


def test_times_are_shown_once_with_their_zone_in_the_head() -> None:
    import polars as pl

    frame = pl.DataFrame({"at": ["2026-11-29T10:00:00Z"]}).with_columns(
        pl.col("at").str.to_datetime(time_zone="UTC")
    )
    made = safe_html(frame._repr_html_())
    assert "<td>2026-11-29 10:00:00</td>" in made and "UTC]" in made
    assert "<small>1 row</small>" in made
