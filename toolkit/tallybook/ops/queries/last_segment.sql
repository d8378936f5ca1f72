-- one row: the segment that the log ends in
select segments.segment
from segments
inner join writers on writers.writer = segments.writer
order by writers.ordinal desc, segments.last_seq desc
limit 1
