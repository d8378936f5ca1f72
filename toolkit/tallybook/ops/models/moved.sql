-- rows of the archive for `lines`, at the positions that their writer has now
select rows.* exclude (filename) replace (
    sources.base + rows.seq as position,
    sources.segment as segment,
    sources.writer as writer,
    sources.boot_id as boot_id,
    sources.node_id as node_id
)
from read_parquet($files, filename = true) as rows
inner join sources on sources.file = rows.filename
