-- one row a writer of which lines were pruned that no archive has: the first and the last of them
with kept as (
    select
        pruned.short_name,
        pruned.last_seq,
        coalesce(max(archived.last_seq) filter (where archived.last_seq <= pruned.last_seq), 0) as archived_until,
        coalesce(sum(archived.last_seq - archived.first_seq + 1), 0) as archived_lines
    from pruned
    left join segments on substr(segments.writer, 1, 8) = pruned.short_name
    left join archived on archived.segment = segments.segment and archived.last_seq <= pruned.last_seq
    group by pruned.short_name, pruned.last_seq
)
select
    short_name,
    case when archived_lines = archived_until then archived_until + 1 else 1 end as first_seq,
    last_seq
from kept
where archived_lines < last_seq
order by short_name
