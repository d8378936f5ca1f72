-- one row a hole: numbers of a writer that no readable line carries and that were not pruned
with broken as (
    select segment
    from segments
    where numbers <> last_seq - first_seq + 1
),
numbered as (
    select
        cast(writer as varchar) as writer,
        seq,
        seq - dense_rank() over (partition by writer order by seq) as island
    from stored()
    where cast(segment as varchar) in (select segment from broken)
),
islands as (
    select writer, first_seq, last_seq
    from segments
    where numbers = last_seq - first_seq + 1
    union all
    select writer, min(seq) as first_seq, max(seq) as last_seq
    from numbered
    group by writer, island
),
begun as (
    select islands.writer, coalesce(max(pruned.last_seq), 0) as before_first
    from islands
    left join pruned on pruned.short_name = substr(islands.writer, 1, 8)
    group by islands.writer
),
steps as (
    select
        islands.writer,
        islands.first_seq,
        greatest(
            begun.before_first,
            coalesce(
                max(islands.last_seq) over (
                    partition by islands.writer order by islands.first_seq, islands.last_seq
                    rows between unbounded preceding and 1 preceding
                ),
                0
            )
        ) as before
    from islands
    inner join begun on begun.writer = islands.writer
),
missing as (
    select writer, before + 1 as first_missing_seq, first_seq - 1 as last_missing_seq
    from steps
    where first_seq > before + 1
),
repairs as (
    select named_writer as writer, first_lost_seq, last_lost_seq
    from stored()
    where event = 'log.repaired'
),
ends as (
    select writer, last_seq from segments
    union all
    select segments.previous_writer as writer, pruned.last_seq
    from segments
    inner join pruned on pruned.short_name = substr(segments.previous_writer, 1, 8)
    union all
    select repairs.writer, pruned.last_seq
    from repairs
    inner join pruned on pruned.short_name = substr(repairs.writer, 1, 8)
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
        repairs.writer,
        greatest(repairs.first_lost_seq, coalesce(reached.last_seq, 0) + 1) as first_missing_seq,
        repairs.last_lost_seq as last_missing_seq
    from repairs
    left join reached on reached.writer = repairs.writer
    where repairs.first_lost_seq is not null and repairs.last_lost_seq > coalesce(reached.last_seq, 0)
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
