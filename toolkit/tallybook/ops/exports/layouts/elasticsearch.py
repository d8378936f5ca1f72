"""Elasticsearch bulk: an action line, then the document line that it is about.

https://www.elastic.co/guide/en/elasticsearch/reference/current/docs-bulk.html
"""

from tallybook.ops.exports import jsons
from tallybook.ops.exports.jsons import Item, Items
from tallybook.ops.exports.layout import Head, Layout

_WHOLE = ("index", "create")
_ACTIONS = {*_WHOLE, "update", "delete"}


def _suits(head: Head) -> bool:
    return (
        len(head.keys) == 1
        and head.keys <= _ACTIONS
        and isinstance(next(iter(head.first.values())), dict)
    )


def _rows(items: Items) -> Items:
    """One row a document, with the fields of its action (_id, _index) before its own."""
    lines = jsons.objects(items)
    for line in lines:
        if line.reason:
            yield line
        elif set(line.value) - _ACTIONS or len(line.value) != 1:
            yield line.bad("no action of a bulk request where one must stand")
        else:
            ((action, fields),) = line.value.items()
            if not isinstance(fields, dict):
                yield line.bad(f"the action {action} has no object of fields")
            elif action == "delete":
                yield line.bad("a bulk request that deletes is no export")
            else:
                yield _document(line, action, fields, next(lines, None))


def _document(line: Item, action: str, fields: dict[str, object], document: Item | None) -> Item:
    if document is None:
        return line.bad("the file ends before the document of this action")
    if document.reason or action in _WHOLE:
        return document if document.reason else line.of({**fields, **document.value})
    return document.bad("an update has a part of a document and not the whole")


LAYOUT = Layout(
    "elasticsearch-bulk", "an action line and a document line", "ndjson", _suits, rows=_rows
)
