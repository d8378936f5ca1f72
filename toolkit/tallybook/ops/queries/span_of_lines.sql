-- one row: rows, different seqs, and the first and last seq and time of `lines`
select
    count(*) as rows_read,
    count(distinct seq) as numbers,
    min(seq) as first_seq,
    max(seq) as last_seq,
    cast(min(occurred_at) as varchar) as first_at,
    cast(max(occurred_at) as varchar) as last_at
from lines
