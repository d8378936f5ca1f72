-- one row an event of an imported log, with its node
select
    rows.* exclude (filename),
    imports.node_id,
    imports.writer,
    imports.writer as segment
from read_parquet(getvariable('import_files'), filename = true, union_by_name = true) as rows
inner join imports on imports.file = rows.filename
