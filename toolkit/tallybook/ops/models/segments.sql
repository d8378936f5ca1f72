-- one row a segment: who wrote it, on which machine and boot, what came before, which lines it has
with loaded as (
    select
        cast(segment as varchar) as segment,
        min(seq) as first_seq,
        max(seq) as last_seq,
        min(occurred_at) as first_at,
        max(occurred_at) as last_at,
        count(*) as events,
        count(distinct seq) as numbers
    from lines
    group by segment
),
spans as (
    from loaded
    union all by name
    select segment, first_seq, last_seq, first_at, last_at, events, numbers from archived
)
select
    spans.segment,
    openings.writer,
    openings.ordinal,
    openings.boot_id,
    openings.node_id,
    openings.host,
    openings.versions,
    openings.previous_writer,
    openings.previous_seq,
    spans.first_seq,
    spans.last_seq,
    spans.first_at,
    spans.last_at,
    spans.events,
    spans.numbers
from spans
inner join openings on openings.segment = spans.segment
