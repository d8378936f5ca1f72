"""The cache of a log that knows of none, beside an export: the answer is that there is none."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tallybook.errors import BadInput
from tallybook.ops.reconciling.explaining import Explained, Flight, explain, reconcile
from tallybook.ops.reconciling.result import Reconciliation
from tallybook.ops.silence import Silence
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.wording import sentence


@dataclass(frozen=True, slots=True)
class Untold:
    """In place of a ``Reconciliation`` or an ``Explained`` in a notebook: each of its tables says
    why there is none."""

    words: str

    @property
    def counted(self) -> Silence:
        """Why nothing is counted."""
        return Silence(self.words)

    @property
    def differences(self) -> Silence:
        """Why no cell is compared."""
        return Silence(self.words)

    @property
    def rows(self) -> Silence:
        """Why no row is compared."""
        return Silence(self.words)

    @property
    def causes(self) -> Silence:
        """Why nothing is explained."""
        return Silence(self.words)

    def of(self, _: str = "") -> Silence:
        """Why no row is explained."""
        return Silence(self.words)

    def cells(self, _: str = "") -> Silence:
        """Why no cell is compared."""
        return Silence(self.words)

    def subject(self, _: str = "", key: str = "") -> str:
        """What was asked for: nothing else can be traced."""
        return key

    @property
    def reconciliation(self) -> "Untold":
        """What stands where an ``Explained`` has its reconciliation."""
        return self

    @property
    def complete(self) -> bool:
        """Nothing that could be read was left out."""
        return True


def reconcile_cache(
    warehouse: Warehouse, export: str | Path | None, *, key: str | Sequence[str]
) -> Reconciliation | Untold:
    """As ``reconcile`` for the cache of a log; ``Untold`` where the log says nothing of one.

    ``export`` may be None there. Raises BadInput where it is None and the log has a cache.
    """
    found = _untold(warehouse)
    return found or reconcile(warehouse, _given(export), key=key)


def explain_cache(
    warehouse: Warehouse,
    export: str | Path | None,
    *,
    key: str | Sequence[str],
    flight: Flight | None = None,
) -> Explained | Untold:
    """As ``explain`` for the cache of a log; ``Untold`` as ``reconcile_cache``."""
    found = _untold(warehouse)
    return found or explain(warehouse, _given(export), key=key, flight=flight)


def _untold(warehouse: Warehouse) -> Untold | None:
    if told := warehouse.silent.get("cache"):
        return Untold(f"{sentence(told)}: there is nothing to compare")
    return None


def _given(export: str | Path | None) -> str | Path:
    if export is None:
        raise BadInput("no export to compare the cache with")
    return export
