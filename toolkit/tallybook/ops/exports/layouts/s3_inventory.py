"""S3 Inventory: a manifest, and CSV without a header, ORC or Parquet; keys in CSV are URL-encoded.
The names of columns are those of the format: LastModifiedDate, else last_modified_date.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html
"""

import re

from tallybook.errors import BadInput
from tallybook.ops.exports import manifests
from tallybook.ops.exports.layout import Layout, Listed
from tallybook.ops.exports.parts import Found, Part
from tallybook.ops.exports.profile import Rule

_ABSENT = ("",)
_RULES = {
    "Key": Rule(encoded="url"),
    "IsLatest": Rule("boolean", null=_ABSENT),
    "IsDeleteMarker": Rule("boolean", null=_ABSENT),
    "Size": Rule("integer", null=_ABSENT),
    "LastModifiedDate": Rule("timestamp", null=_ABSENT),
    "IsMultipartUploaded": Rule("boolean", null=_ABSENT),
}
_COLUMNAR = {
    "is_latest": Rule("boolean"),
    "is_delete_marker": Rule("boolean"),
    "size": Rule("integer"),
    "last_modified_date": Rule("timestamp"),
    "is_multipart_uploaded": Rule("boolean"),
}
_FORMATS = {"CSV": "csv", "ORC": "orc", "Parquet": "parquet"}


def _listed(found: Found) -> Listed | None:
    own = [part for part in found.named("manifest.json") if _is_inventory(part)]
    manifest = manifests.the_only(own, "manifests", found.source)
    if manifest is None:
        return None
    for sum_of in found.named("manifest.checksum"):
        words = sum_of.path.read_text("utf-8", "replace").split()
        manifests.require_digest(manifest, "md5", words[0] if words else "", sum_of.name)
    said = manifests.read(manifest)
    parts = []
    for entry in said["files"]:
        part = manifests.part_of(found, entry["key"], manifest)
        manifests.require_size(part, int(entry["size"]), manifest.name)
        manifests.require_digest(part, "md5", entry["MD5checksum"], manifest.name)
        parts.append(part)
    manifests.require_no_other(found, parts, manifest)
    if not parts:
        raise BadInput(f"{manifest.name} lists no file: the inventory is empty")
    form = _FORMATS.get(said.get("fileFormat", "CSV"), "")
    if not form:
        raise BadInput(f"{manifest.name}: the format {said['fileFormat']} is not known")
    if form != "csv":
        there = set(re.findall(r"\w+", said.get("fileSchema", "")))
        typed = {name: rule for name, rule in _COLUMNAR.items() if name in there}
        return Listed(parts, rules=typed, format=form)
    columns = tuple(name.strip() for name in said["fileSchema"].split(","))
    rules = {name: rule for name, rule in _RULES.items() if name in columns}
    return Listed(parts, columns, rules, format=form)


def _is_inventory(part: Part) -> bool:
    said = manifests.read(part)
    return isinstance(said, dict) and {"sourceBucket", "fileFormat", "files"} <= said.keys()


LAYOUT = Layout("s3-inventory", "an S3 Inventory, with its manifest", listed=_listed)
