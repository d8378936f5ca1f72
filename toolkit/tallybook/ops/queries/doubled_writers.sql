-- one row a writer of which some seq stands twice: in one segment, or in two that overlap
with steps as (
    select
        writer,
        events > numbers as repeats,
        first_seq <= max(last_seq) over (
            partition by writer order by first_seq, last_seq rows between unbounded preceding and 1 preceding
        ) as meets
    from segments
)
select distinct writer
from steps
where repeats or meets
