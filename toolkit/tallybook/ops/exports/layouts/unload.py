"""What Redshift's UNLOAD writes with a manifest: the files, their sizes and their rows.

https://docs.aws.amazon.com/redshift/latest/dg/r_UNLOAD.html
"""

from tallybook.ops.exports import manifests
from tallybook.ops.exports.layout import Layout, Listed
from tallybook.ops.exports.parts import Found, Part


def _listed(found: Found) -> Listed | None:
    own = [part for part in found.named("manifest") if _is_unload(part)]
    manifest = manifests.the_only(own, "manifests", found.source)
    if manifest is None:
        return None
    parts, rows = [], {}
    for entry in manifests.read(manifest)["entries"]:
        part = manifests.part_of(found, entry["url"].partition("://")[2], manifest)
        about = entry.get("meta", {})
        if "content_length" in about:
            manifests.require_size(part, int(about["content_length"]), manifest.name)
        if "record_count" in about:
            rows[part.name] = int(about["record_count"])
        parts.append(part)
    manifests.require_no_other(found, parts, manifest)
    return Listed(parts, rows=rows)


def _is_unload(part: Part) -> bool:
    said = manifests.read(part)
    return isinstance(said, dict) and isinstance(said.get("entries"), list)


LAYOUT = Layout("unload", "files that Redshift unloaded, with their manifest", listed=_listed)
