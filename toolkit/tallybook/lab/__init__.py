"""JupyterLab on a book: the server, and what a person at a screen asks of an incident.

    server     ``tallybook lab``: JupyterLab on loopback, with a token
    offline    the scripts of the charts, from this machine alone
    view       linked charts and tables of one span: brush, slider, trace
    pages      tables as HTML, everything in them escaped
    notes      findings, written down as one goes, and the report that they make

A notebook asks for one ``View`` and shows its parts; each part follows what is selected, and a cell
can use that:

    from tallybook import lab
    incident = lab.open_incident(book, span)
    incident.linked                     # brush a window: everything below it follows
    incident.selection.span             # and a cell asks on: ops.latency(warehouse, …)

It stands above ``runbook``, whose report it writes, and like it reads files only: the runtime is
never imported. Nothing is written but under ``--out``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tallybook.lab.view import View as View
    from tallybook.lab.view import open_incident as open_incident

__all__ = ["View", "open_incident"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.view"), name)
