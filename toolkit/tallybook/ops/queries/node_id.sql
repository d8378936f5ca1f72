-- at most one row: the node that wrote the end of the log
select segments.node_id
from segments
inner join writers on writers.writer = segments.writer
where segments.node_id is not null
order by writers.ordinal desc, segments.last_seq desc
limit 1
