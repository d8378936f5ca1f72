-- one row: the segment that the log ends in
select segment
from segments
order by ordinal desc, last_seq desc
limit 1
