-- one row a hole: numbers of a writer that no readable line carries and that were not pruned
with owned as (
    select segments.writer, lines.seq
    from lines
    inner join segments on segments.segment = lines.segment
),
begun as (
    select owned.writer, coalesce(max(pruned.last_seq), 0) as before_first
    from owned
    left join pruned on pruned.short_name = substr(owned.writer, 1, 8)
    group by owned.writer
),
holed as (
    select owned.writer, begun.before_first
    from owned
    inner join begun on begun.writer = owned.writer
    group by owned.writer, begun.before_first
    having count(distinct owned.seq) <> max(owned.seq) - begun.before_first
        or min(owned.seq) <> begun.before_first + 1
),
steps as (
    select
        owned.writer,
        owned.seq,
        coalesce(
            lag(owned.seq) over (partition by owned.writer order by owned.seq), holed.before_first
        ) as before
    from owned
    inner join holed on holed.writer = owned.writer
),
missing as (
    select writer, before + 1 as first_missing_seq, seq - 1 as last_missing_seq
    from steps
    where seq > before + 1
),
ends as (
    select writer, last_seq from segments
    union all
    select segments.previous_writer as writer, pruned.last_seq
    from segments
    inner join pruned on pruned.short_name = substr(segments.previous_writer, 1, 8)
    union all
    select lines.writer, pruned.last_seq
    from lines
    inner join pruned on pruned.short_name = substr(lines.writer, 1, 8)
    where lines.event = 'log.repaired'
    union all
    select marks.writer, pruned.last_seq
    from marks
    inner join pruned on pruned.short_name = substr(marks.writer, 1, 8)
),
reached as (
    select writer, max(last_seq) as last_seq
    from ends
    group by writer
),
lost_ends as (
    select
        segments.previous_writer as writer,
        coalesce(reached.last_seq, 0) + 1 as first_missing_seq,
        max(segments.previous_seq) as last_missing_seq
    from segments
    left join reached on reached.writer = segments.previous_writer
    where segments.previous_writer is not null
    group by segments.previous_writer, coalesce(reached.last_seq, 0)
    having max(segments.previous_seq) > coalesce(reached.last_seq, 0)
),
repaired as (
    select
        lines.writer,
        greatest(lines.first_lost_seq, coalesce(reached.last_seq, 0) + 1) as first_missing_seq,
        lines.last_lost_seq as last_missing_seq
    from lines
    left join reached on reached.writer = lines.writer
    where lines.event = 'log.repaired' and lines.first_lost_seq is not null
        and lines.last_lost_seq > coalesce(reached.last_seq, 0)
),
reached_short as (
    select substr(writer, 1, 8) as short_name, max(last_seq) as last_seq
    from reached
    group by substr(writer, 1, 8)
),
cut_off as (
    select
        marks.writer,
        coalesce(reached_short.last_seq, 0) + 1 as first_missing_seq,
        max(marks.seq) as last_missing_seq
    from marks
    left join reached_short on reached_short.short_name = substr(marks.writer, 1, 8)
    group by marks.writer, coalesce(reached_short.last_seq, 0)
    having max(marks.seq) > coalesce(reached_short.last_seq, 0)
),
holes as (
    from missing
    union all
    from lost_ends
    union all
    from repaired
    union all
    from cut_off
)
select writer, first_missing_seq, max(last_missing_seq) as last_missing_seq
from holes
group by writer, first_missing_seq
order by writer, first_missing_seq
