"""Which runbooks there are: those in ``./runbooks``, and those that tallybook carries.

Of two with one name that of ``./runbooks`` counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallybook.errors import BadInput
from tallybook.layout import carried
from tallybook.runbook.parameters import Parameter, declared, nearest

SUFFIX = ".ipynb"
HERE = Path("runbooks")


@dataclass(frozen=True, slots=True)
class Runbook:
    """One procedure: its name, its file, the question it answers, what it can be asked.

    ``tagged`` says whether a cell is tagged ``parameters`` at all.
    """

    name: str
    path: Path
    question: str
    parameters: tuple[Parameter, ...]
    tagged: bool = True

    def takes(self, name: str) -> bool:
        """Whether the parameters cell declares ``name``."""
        return any(parameter.name == name for parameter in self.parameters)


def listed() -> list[Runbook]:
    """All runbooks of ``./runbooks`` and the carried ones, by name."""
    known = _paths()
    return [read(known[name]) for name in sorted(known)]


def find(name_or_path: str | Path) -> Runbook:
    """The runbook of that name or file; raises BadInput that names the nearest."""
    text = str(name_or_path)
    if text.endswith(SUFFIX) or "/" in text:
        return read(Path(text))
    known = _paths()
    if text in known:
        return read(known[text])
    raise BadInput(f"no runbook {text}: {nearest(text, sorted(known))}")


def _paths() -> dict[str, Path]:
    """The file of each runbook, by its name."""
    places = (carried("runbooks"), HERE)
    return {path.stem: path for place in places for path in place.glob(f"*{SUFFIX}")}


def folder() -> Path:
    """``./runbooks`` where it holds a notebook, else the folder that tallybook carries."""
    return HERE if any(HERE.glob(f"*{SUFFIX}")) else carried("runbooks")


def read(path: Path) -> Runbook:
    """Read a notebook file, without Jupyter; raises BadInput where it is none."""
    try:
        notebook = json.loads(path.read_text("utf-8"))
        cells = [dict(cell) for cell in notebook["cells"]]
    except FileNotFoundError:
        raise BadInput(f"no runbook at {path}") from None
    except OSError as error:
        raise BadInput(f"cannot read the runbook {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{path} is no notebook (JSON with cells, nbformat 4)") from None
    tagged = [cell for cell in cells if "parameters" in tags_of(cell)]
    return Runbook(path.stem, path, _question(cells), _declared(tagged, path), bool(tagged))


def text_of(cell: Mapping[str, Any]) -> str:
    """The source of a cell, which a file stores as text or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def tags_of(cell: Mapping[str, Any]) -> list[str]:
    """The tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def _question(cells: list[dict[str, Any]]) -> str:
    prose = next((text_of(cell) for cell in cells if cell.get("cell_type") == "markdown"), "")
    lines = [line.strip() for line in prose.splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith("#")] or lines
    return said[0].lstrip("# ") if said else ""


def _declared(tagged: list[dict[str, Any]], path: Path) -> tuple[Parameter, ...]:
    if not tagged:
        return ()
    try:
        return declared(text_of(tagged[0]))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None
