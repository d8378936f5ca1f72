"""A DynamoDB export to S3: manifests, and items whose values carry a type tag.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html
"""

from typing import Any

from tallybook.errors import BadInput
from tallybook.ops.exports import jsons, manifests
from tallybook.ops.exports.jsons import Item, Items, RawNumber
from tallybook.ops.exports.layout import Head, Layout, Listed
from tallybook.ops.exports.parts import Found

_SETS = {"SS": str, "NS": RawNumber, "BS": str}


def _suits(head: Head) -> bool:
    item = head.first.get("Item") if head.keys == {"Item"} else None
    return isinstance(item, dict) and all(isinstance(value, dict) for value in item.values())


def _listed(found: Found) -> Listed | None:
    summaries = found.named("manifest-summary.json")
    summary = manifests.the_only(summaries, "manifests", found.source)
    if summary is None:
        return None
    said = manifests.read(summary)
    if said.get("outputFormat", "DYNAMODB_JSON") != "DYNAMODB_JSON":
        raise BadInput(f"{summary.name}: the format {said['outputFormat']} is not read; export the "
                       "table as DynamoDB JSON")  # fmt: skip
    if said.get("exportType", "FULL_EXPORT") != "FULL_EXPORT":
        raise BadInput(f"{summary.name}: an incremental export has changes and not the table")
    files = manifests.part_of(found, said["manifestFilesS3Key"], summary)
    parts, rows = [], {}
    for entry in jsons.lines(files.path, 1 << 20):
        if entry.reason:
            raise BadInput(f"{files.name} line {entry.line}: {entry.reason}")
        part = manifests.part_of(found, entry.value["dataFileS3Key"], files)
        manifests.require_digest(part, "md5", entry.value["md5Checksum"], files.name)
        parts.append(part)
        rows[part.name] = int(entry.value["itemCount"])
    manifests.require_no_other(found, [*parts, files], summary)
    manifests.require_total(summary, int(said["itemCount"]), sum(rows.values()), files)
    return Listed(parts, rows=rows, format="ndjson")


def _rows(items: Items) -> Items:
    for item in jsons.objects(items):
        yield item if item.reason else _row(item)


def _row(item: Item) -> Item:
    held = item.value.get("Item")
    if not isinstance(held, dict):
        return item.bad("no Item of a DynamoDB export")
    try:
        return item.of({name: unwrapped(value) for name, value in held.items()})
    except ValueError as error:
        return item.bad(str(error))


def unwrapped(value: Any) -> Any:
    """The value behind a type tag: N is a number with all its digits, the sets are in order.

    Raises ValueError for an unknown tag."""
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"{jsons.compact(value)[:60]} has no type tag of DynamoDB")
    ((tag, held),) = value.items()
    if tag in ("S", "B"):
        return str(held)
    if tag == "N":
        return RawNumber(held)
    if tag == "BOOL":
        return held
    if tag == "NULL":
        return None
    if tag in _SETS:
        return [_SETS[tag](one) for one in sorted(held)]
    if tag == "L":
        return [unwrapped(one) for one in held]
    if tag == "M":
        return {name: unwrapped(one) for name, one in held.items()}
    raise ValueError(f"{tag!r} is no type tag of DynamoDB")


LAYOUT = Layout(
    "dynamodb", "a DynamoDB export to S3, with its manifests", "ndjson", _suits, _listed, _rows
)
