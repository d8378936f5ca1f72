-- one row a segment: who wrote it, on which machine and boot, and what came before
with opened as (
    select *
    from lines
    where event = 'log.opened'
    qualify row_number() over (partition by segment order by seq) = 1
),
spans as (
    select
        segment,
        min(seq) as first_seq,
        max(seq) as last_seq,
        min(occurred_at) as first_at,
        max(occurred_at) as last_at,
        count(*) as events
    from lines
    group by segment
),
named as (
    select substr(writer, 1, 8) as short_name, min(writer) as writer
    from opened
    where writer is not null
    group by substr(writer, 1, 8)
)
select
    spans.segment,
    coalesce(opened.writer, named.writer, split_part(spans.segment, '-', 1)) as writer,
    opened.boot_id,
    opened.node_id,
    opened.host,
    opened.versions,
    opened.previous_writer,
    opened.previous_seq,
    spans.first_seq,
    spans.last_seq,
    spans.first_at,
    spans.last_at,
    spans.events
from spans
left join opened on opened.segment = spans.segment
left join named on named.short_name = split_part(spans.segment, '-', 1)
