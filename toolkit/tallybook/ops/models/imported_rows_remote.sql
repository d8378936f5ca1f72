-- one row an event of an imported log in a bucket, with its node, which its job id begins with
select
    rows.* exclude (node) replace (rows.node || '/' || rows.job_id as job_id),
    rows.node as node_id,
    imports.writer,
    imports.writer as segment
from remote_rows as rows
inner join imports on imports.node_id = rows.node
