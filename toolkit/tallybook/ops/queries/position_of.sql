-- at most one row: the position of line $seq of the writer that begins with $writer
select position
from events
where starts_with(writer, $writer) and seq = $seq
order by position
limit 1
