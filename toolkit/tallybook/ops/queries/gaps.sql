-- one row a hole: numbers of a writer that no readable line carries
with owned as (
    select segments.writer, lines.seq
    from lines
    inner join segments on segments.segment = lines.segment
),
holed as (
    select writer, min(seq) as first_seq, max(seq) as last_seq
    from owned
    group by writer
    having count(distinct seq) <> max(seq) or min(seq) <> 1
),
steps as (
    select owned.writer, owned.seq, lag(owned.seq, 1, 0) over (partition by owned.writer order by owned.seq) as before
    from owned
    inner join holed on holed.writer = owned.writer
),
missing as (
    select writer, before + 1 as first_missing_seq, seq - 1 as last_missing_seq
    from steps
    where seq > before + 1
),
reached as (
    select writer, max(last_seq) as last_seq
    from segments
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
)
select writer, first_missing_seq, last_missing_seq from missing
union
select writer, first_missing_seq, last_missing_seq from lost_ends
union
select writer, first_missing_seq, last_missing_seq from repaired
order by writer, first_missing_seq
