"""The native layouts that are known, one file each. A new one is a file and a line here."""

from tallybook.ops.exports.layout import Layout
from tallybook.ops.exports.layouts import (
    bigquery,
    dynamodb,
    elasticsearch,
    mongodb,
    postgresql_copy,
    s3_inventory,
    unload,
)

ALL: tuple[Layout, ...] = (
    dynamodb.LAYOUT,
    s3_inventory.LAYOUT,
    unload.LAYOUT,
    bigquery.LAYOUT,
    elasticsearch.LAYOUT,
    mongodb.LAYOUT,
    postgresql_copy.LAYOUT,
)
BY_NAME = {layout.name: layout for layout in ALL}
