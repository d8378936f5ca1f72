-- one row a time that the wall clock was set by $least_s or more between two events of a boot: when, by how much
with stepped as (
    select
        writer,
        seq,
        boot_id,
        occurred_at,
        (
            epoch_us(occurred_at) - boot_us
            - lag(epoch_us(occurred_at) - boot_us) over (partition by boot_id order by position)
        ) / 1000000.0 as moved_s
    from events
    where boot_id is not null and boot_us is not null
)
select occurred_at as set_at, moved_s, writer, seq, boot_id
from stepped
where abs(moved_s) >= $least_s
    and ($since::timestamptz is null or occurred_at >= $since::timestamptz)
    and ($until::timestamptz is null or occurred_at < $until::timestamptz)
order by set_at, writer, seq
