-- one row: how many lines repeat a (writer, seq)
select count(*) - count(distinct (segments.writer, lines.seq)) as doubled
from lines
inner join segments on segments.segment = lines.segment
