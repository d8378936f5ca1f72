-- one row an event of an imported log, with its node; two logs may have a job id in common, so it begins with the node
select
    rows.* exclude (filename) replace (imports.node_id || '/' || rows.job_id as job_id),
    imports.node_id,
    imports.writer,
    imports.writer as segment
from read_parquet(getvariable('import_files'), filename = true, union_by_name = true) as rows
inner join imports on imports.file = rows.filename
