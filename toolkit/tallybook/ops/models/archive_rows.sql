-- one row a line of a segment, sorted for questions by event and by time
select *
from lines
order by event, seq
