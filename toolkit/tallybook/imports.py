"""Import papermill and altair in half their time.

jsonschema's check of one format, ``iri``, imports ``rfc3987_syntax``, which builds a grammar for
0.8 s when it is imported. While jsonschema is imported, a module stands in for it whose function
imports the real one at its first call: every format is still checked, by the same code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

_GRAMMAR = "rfc3987_syntax"


@contextmanager
def late_grammar() -> Iterator[None]:
    """Imports in this block do not build the grammar; checks made later do, once."""
    known = "jsonschema" in sys.modules or _GRAMMAR in sys.modules
    if known or find_spec(_GRAMMAR) is None:
        yield
        return
    stand_in = ModuleType(_GRAMMAR)
    stand_in.__dict__["is_valid_syntax"] = _is_valid_syntax
    sys.modules[_GRAMMAR] = stand_in
    try:
        yield
    finally:
        if sys.modules.get(_GRAMMAR) is stand_in:
            del sys.modules[_GRAMMAR]


def _is_valid_syntax(term: str, value: str) -> bool:
    return bool(import_module(_GRAMMAR).is_valid_syntax(term, value))
