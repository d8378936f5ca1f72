-- one row a writer: the writer before it, and when it began
select
    writer,
    max(previous_writer) as previous_writer,
    min(first_at) as first_at
from segments
group by writer
order by first_at, writer
