-- one row a segment in `lines`: its rows, its first and its last seq
select cast(segment as varchar) as segment, count(*) as rows_read, min(seq) as first_seq, max(seq) as last_seq
from lines
group by segment
