-- one row a line of the archives of nodes in a bucket, at its position in the fleet
select rows.* replace (
    (openings.ordinal << 40) + rows.seq as position,
    openings.writer as writer,
    openings.boot_id as boot_id,
    openings.node_id as node_id
)
from remote_archive as rows
inner join openings on openings.segment = rows.segment
