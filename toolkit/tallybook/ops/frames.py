"""Polars frames as tables of a notebook: no id is cut in two, a long text has a wide column."""

import re
import sys

import polars

_STYLE = (
    "<style>.tallybook-table table td,.tallybook-table table th{white-space:nowrap}"
    ".tallybook-table table td.long{min-width:40em;text-align:left;"
    "white-space:pre-wrap;overflow-wrap:anywhere}"
    ".tallybook-table td.long section{max-height:6em;overflow:auto}</style>"
)
_LONG = re.compile(r"<td>((?:&[^;]+;|[^<&]){63,})</td>")  # with its quotes


def html(frame: polars.DataFrame) -> str:
    """The table as Polars makes it, with widths: texts of up to 60 characters stay on one line, a
    longer one (``td.long``) has several and scrolls, and a table may be wider than its cell."""
    table = _LONG.sub(r'<td class="long"><section>\1</section></td>', frame._repr_html_())
    return f'{_STYLE}<div class="tallybook-table">{table}</div>'


def show_in_notebooks() -> None:
    """Where this process is a kernel, have it show frames by ``html``, unless told otherwise."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        shown = shell.display_formatter.formatters["text/html"]
        if polars.DataFrame not in shown:
            shown.for_type(polars.DataFrame, html)
