"""Each difference joined to the history of its key: what is in flight, and why the rest differs.

One statement asks the log of all keys at once (``queries/explained.sql``). A job is about a key
where its payload has the key columns, where its idempotency key, ordering key or resource is that
key, or where it wrote the cache entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars

from tallybook.errors import BadInput
from tallybook.layout import FOLDER_MODE
from tallybook.ops import statements, windows
from tallybook.ops.exports.profile import Profile
from tallybook.ops.reconciling import causes, compare, covers, plan
from tallybook.ops.reconciling.compare import Table
from tallybook.ops.reconciling.covers import Cover
from tallybook.ops.reconciling.result import RELATIONS, Reconciliation
from tallybook.ops.warehouse import Warehouse
from tallybook.ops.windows import Instant

IN_FLIGHT_MAX_S = 3600.0
INCOMPLETE = "incomplete"
DIFFERENT = ("differs", "only_local", "only_cloud")
_SHOWN = 1000
_YEAR_S = 366 * 86400
_TOLD = ("key", "difference", "cause", "told", "job_id", "attempt_count", "error_type",
         "http_status", "place")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Explained:
    """A reconciliation whose differences have a cause.

    ``rows`` has one row a key that differs, is only on one side, or is in flight: difference, key,
    cause, told (a sentence), entry_key, version, is_cached, job_id, topic, job_status,
    lease_token, is_changed_since (here, behind its last job), attempt_count, error_type,
    last_error, http_status, moved_at, next_attempt_at, flying_since, place (writer:seq of the last
    event of its history).
    """

    reconciliation: Reconciliation
    rows: polars.DataFrame
    cover: Cover | None = None

    @property
    def verdict(self) -> str:
        """clean, in_flight (nothing else differs), differs, or incomplete (not all was read)."""
        found = self.reconciliation
        if not found.complete:
            return INCOMPLETE
        settled = {
            side: found.statuses["match"] + found.statuses[f"in_flight_{side}"]
            for side in ("local", "cloud")
        }
        if settled != {"local": found.rows_local, "cloud": found.rows_cloud}:
            return "differs"
        return "clean" if found.clean else causes.IN_FLIGHT

    @property
    def causes(self) -> polars.DataFrame:
        """One row a cause: cause, rows, meaning; the unexplained first."""
        return causes.counted(self.rows)

    def of(self, cause: str = "") -> polars.DataFrame:
        """One row a key with this cause, or with any: key, difference, cause, told, job_id,
        attempt_count, error_type, http_status, place. Raises BadInput for what is no cause."""
        return self._of(cause).select(_TOLD)

    def cells(self, cause: str = "") -> polars.DataFrame:
        """The changed cells of the keys with this cause: key, column, local, cloud."""
        found = self.reconciliation.differences
        return found.filter(polars.col("key").is_in(self._of(cause)["key"].to_list()))

    def subject(self, cause: str = "", key: str = "") -> str:
        """What to trace of a key, else of the first one with this cause: its job, else its entry.
        Empty where nothing differs. Raises BadInput for a key that does not differ."""
        rows = self._of(cause)
        found = rows.filter(polars.col("key") == key) if key else rows
        if key and found.is_empty():
            raise BadInput(f"the key {key!r} is none of those that differ here")
        named = found.select(polars.coalesce("job_id", "entry_key", "key")).head(1)
        return str(named.item()) if named.height else ""

    def _of(self, cause: str) -> polars.DataFrame:
        if not cause:
            return self.rows
        if cause not in causes.CAUSES:
            raise BadInput(f"no cause {cause!r}; choose one of {', '.join(causes.CAUSES)}")
        return self.rows.filter(polars.col("cause") == cause)

    def keys(self, cause: str) -> list[str]:
        """The keys with this cause, sorted. Raises BadInput for what is no cause."""
        found: list[str] = self._of(cause)["key"].sort().to_list()
        return found

    def write(self, folder: Path, kind: str = "csv") -> None:
        """Write ``explained`` into ``folder``: csv, parquet or ndjson."""
        from tallybook.ops.reconciling import writing

        found = self.reconciliation
        found.room.keep("explained", self.rows)
        writing.relation(found, found.sql("from explained"), folder / f"explained.{kind}")

    def keep(self, folder: Path) -> None:
        """Write ``rows``, ``differences``, ``unreadable`` and ``explained`` into ``folder`` as
        NDJSON, which keeps null apart from ''."""
        from tallybook.ops.reconciling import writing

        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        found = self.reconciliation
        for name in RELATIONS:
            writing.relation(found, found.relation(name), folder / f"{name}.ndjson")
        self.write(folder, "ndjson")

    def as_json(self) -> dict[str, Any]:
        """What ``tallybook reconcile --explain --json`` prints beside the reconciliation."""
        shown = self.rows.select(_TOLD).head(_SHOWN)
        return {
            "causes": {row["cause"]: row["rows"] for row in self.causes.iter_rows(named=True)},
            "explained": shown.to_dicts(),
            "more": self.rows.height > _SHOWN,
            "covers": list(self.cover.told) if self.cover else [],
        }


@dataclass(frozen=True, slots=True)
class Flight:
    """What counts as in flight: ``covers`` says up to where the export goes (``covers.cover``);
    what is open or came after that for longer than ``most_s`` before ``at`` (else now) is a
    difference. Raises BadInput for a bound that is none."""

    covers: str | None = None
    most_s: float = IN_FLIGHT_MAX_S
    at: Instant = None

    def __post_init__(self) -> None:
        if not 0 < self.most_s <= _YEAR_S:
            raise BadInput(
                f"in flight for at most {self.most_s:g} s: use more than 0, up to a year"
            )


def reconcile(
    left: Table, right: Table, *, key: str | Sequence[str], flight: Flight | None = None, **how: Any
) -> Reconciliation:
    """Compare ``left`` (local) with ``right`` (cloud) by the columns ``key``, as
    ``compare.reconcile``, which takes ``how``.

    With a warehouse on the left, its cache, differences that are in flight are set apart.
    """
    found = compare.reconcile(left, right, key=key, **how)
    if not isinstance(left, Warehouse):
        return found
    return because(left, found, covered(flight, how.get("profile"))).reconciliation


def explain(
    warehouse: Warehouse,
    export: Table,
    *,
    key: str | Sequence[str],
    local: Table | None = None,
    flight: Flight | None = None,
    **how: Any,
) -> Explained:
    """Compare the cache of a book, or the table ``local`` of the same keys, with ``export``, and
    say of each difference why it is one, by the log of that book. Raises BadInput."""
    found = compare.reconcile(warehouse if local is None else local, export, key=key, **how)
    asked = covered(flight, how.get("profile"))
    return because(warehouse, found, asked, is_cache=local is None)


def covered(flight: Flight | None, profile: Profile | None) -> Flight:
    """What counts as in flight, with what a profile says that the export covers where ``flight``
    does not."""
    asked = flight or Flight()
    if profile and profile.covers and not asked.covers:
        return replace(asked, covers=profile.covers)
    return asked


def because(
    warehouse: Warehouse, found: Reconciliation, flight: Flight, *, is_cache: bool = True
) -> Explained:
    """What the log of ``warehouse`` says of the differences in ``found``; ``is_cache``: its local
    side was the cache of this warehouse, else a table of the same keys."""
    cover = covers.cover(warehouse, flight.covers) if flight.covers else None
    apart = found.rows.filter(polars.col("status").is_in(DIFFERENT))
    asked = {
        "keys": apart["key"].to_list(),
        "statuses": apart["status"].to_list(),
        "local_rows": apart["local_row"].to_list() if is_cache else [None] * apart.height,
        "pointers": [_pointer(name) for name in found.key],
        "is_cache": is_cache,
        "is_whole": _is_whole(warehouse),
        "is_cut": bool(found.statuses["unreadable_cloud"]),
        "at": windows.instant(flight.at, windows.named_zone("UTC")) or datetime.now(UTC),
        "most_us": round(flight.most_s * 1e6),
        **(cover.bounds() if cover else covers.NOTHING),
    }
    warehouse.sql(statements.model("wording"))
    rows = warehouse.frame("explained", asked)
    return Explained(_set_apart(found, apart, rows), rows, cover)


def _pointer(name: str) -> str:
    """The JSON pointer (RFC 6901) of a field."""
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _is_whole(warehouse: Warehouse) -> bool:
    """Whether the log has every event: else what it does not say may have happened all the same."""
    pruned = warehouse.frame("pruned_away")
    return not (warehouse.notes or pruned.height or warehouse.silent)


def _set_apart(
    found: Reconciliation, apart: polars.DataFrame, rows: polars.DataFrame
) -> Reconciliation:
    """The reconciliation with the rows in flight under that status, on their own sides."""
    flying = apart.filter((rows["cause"] == causes.IN_FLIGHT).to_list())
    if flying.is_empty():
        return found
    statuses = dict(found.statuses)
    told = flying.select("status", "local_row", "cloud_row").iter_rows()
    for status, local_row, cloud_row in told:
        statuses[status] -= 1
        statuses["in_flight_local"] += local_row is not None
        statuses["in_flight_cloud"] += cloud_row is not None
    found.room.keep("flying", flying)
    for statement in plan.SET_APART:
        found.room.run(statement)
    changed = dict(found.room.all(plan.CHANGED_BY_COLUMN))
    return replace(found, statuses=statuses, changed_cells_by_column=changed)


def first_of_each(rows: polars.DataFrame, most: int) -> Sequence[dict[str, Any]]:
    """The first ``most`` rows of each cause, the unexplained first."""
    order = causes.counted(rows)["cause"].to_list()
    return [
        row
        for cause in order
        for row in rows.filter(polars.col("cause") == cause).head(most).to_dicts()
    ]
