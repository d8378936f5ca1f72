-- one row an event of an imported log, in its Parquet file
select * from lines
union all by name
select
    *,
    getvariable('imported_writer') as writer,
    getvariable('imported_node') as node_id,
    getvariable('imported_writer') as segment
from read_parquet(getvariable('archive_files'))
