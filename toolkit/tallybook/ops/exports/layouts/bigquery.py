"""BigQuery NDJSON with its schema beside it: integers and numerics stand in quotes.

The schema is ``<name>_schema.json`` or ``schema.json``, as ``bq show --schema`` writes it.
https://cloud.google.com/bigquery/docs/exporting-data
"""

from typing import Any

from tallybook.ops.exports import manifests
from tallybook.ops.exports.layout import Layout, Listed
from tallybook.ops.exports.parts import Found
from tallybook.ops.exports.profile import Rule

_TYPES = {
    "INTEGER": "integer",
    "INT64": "integer",
    "NUMERIC": "decimal(38,9)",
    "DECIMAL": "decimal(38,9)",
    "TIMESTAMP": "timestamp",
    "DATETIME": "timestamp",
    "DATE": "date",
    "BOOLEAN": "boolean",
    "BOOL": "boolean",
}


def _listed(found: Found) -> Listed | None:
    files = [*found.parts, *found.beside]
    schemas = [part for part in files if _is_name_of_schema(part.name)]
    schema = manifests.the_only(schemas, "schemas", found.source)
    if schema is None:
        return None
    fields = _fields(manifests.read(schema))
    if fields is None:
        return None
    parts = [part for part in found.parts if part.path != schema.path]
    rules = {field["name"]: _rule(field) for field in fields}
    return Listed(parts, tuple(rules), rules, format="ndjson")


def _is_name_of_schema(name: str) -> bool:
    return name.rpartition("/")[2] == "schema.json" or name.endswith(
        ("_schema.json", ".schema.json")
    )


def _fields(said: Any) -> list[dict[str, Any]] | None:
    fields = said.get("fields") if isinstance(said, dict) else said
    is_schema = isinstance(fields, list) and all(
        isinstance(field, dict) and {"name", "type"} <= field.keys() for field in fields
    )
    return fields if is_schema else None


def _rule(field: dict[str, Any]) -> Rule:
    """The type of a field; a DATE may leave out the zero of a month or a day: 2023-12-6."""
    if field.get("mode") == "REPEATED":
        return Rule("text")
    kind = _TYPES.get(str(field["type"]).upper(), "text")
    return Rule(kind, format="%Y-%m-%d" if kind == "date" else "")


LAYOUT = Layout("bigquery", "BigQuery NDJSON, with its schema", listed=_listed)
