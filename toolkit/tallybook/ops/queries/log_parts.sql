-- one row a segment in order of history: its events, its numbers, those of them that are missing, its time
select
    segment,
    left(writer, 8) as writer,
    events,
    first_seq,
    last_seq,
    last_seq - first_seq + 1 - numbers as missing,
    first_at,
    last_at
from segments
order by ordinal, first_seq
