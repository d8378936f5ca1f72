"""Whether what was read is one export, and the one that its profile is for."""

from difflib import get_close_matches

from tallybook.errors import BadInput
from tallybook.ops.exports.account import FileRead, Reading
from tallybook.ops.exports.profile import Profile

_SPARSE = ("ndjson", "json")


def require_one_export(reading: Reading, file: FileRead, columns: int) -> None:
    """Raise BadInput where a part has other columns than the first: two exports are mixed."""
    found = file.found
    first = next((one for one in reading.files if one.format != "json"), None)
    if first is None:
        return
    if file.format != first.format:
        raise BadInput(f"{reading.source} mixes two exports: {first.name} is {first.format} "
                       f"and {file.name} is {file.format}")  # fmt: skip
    if found and first.found and set(found.columns) != set(first.found.columns):
        other = sorted(set(found.columns) ^ set(first.found.columns))[0]
        raise BadInput(f"{reading.source} mixes two exports: {first.name} and {file.name} do "
                       f"not have the same columns (see {other!r})")  # fmt: skip
    if file.format in ("parquet", "orc", "xlsx") and len(reading.target.columns) > columns:
        raise BadInput(f"{reading.source} mixes two exports: {file.name} has the column "
                       f"{reading.target.columns[columns]!r}, {first.name} has not")  # fmt: skip


def require_known_rules(reading: Reading, profile: Profile) -> None:
    """Raise BadInput where the profile has a rule for a column that is not there."""
    held = reading.target.columns
    for name in profile.rules if profile.is_own else ():
        if name not in held:
            near = get_close_matches(name, held, 1)
            hint = f"the nearest is {near[0]!r}" if near else f"it has {', '.join(held)}"
            raise BadInput(f"{reading.source} has no column {name!r}, for which the "
                           f"profile has a rule; {hint}")  # fmt: skip


def require_pinned_columns(reading: Reading, profile: Profile) -> None:
    """Raise BadInput where the columns are not those of the profile; JSON may lack some."""
    pinned = profile.dialect.columns
    held = reading.target.columns
    if pinned and set(pinned) != set(held):
        other = sorted(set(pinned) ^ set(held))[0]
        where = "the profile has it and the export has not"
        if other in held:
            where = "the export has it and the profile has not"
        if where.startswith("the export") or reading.files[0].format not in _SPARSE:
            raise BadInput(f"{reading.source} no longer fits the profile: column "
                           f"{other!r}: {where}")  # fmt: skip
        reading.target.need(pinned)
