-- one row a window and reason with failed attempts in it; a window without any has one row, reason null
with counted as (
    select
        grain_of(occurred_at, $starts, $grain_us) as grain,
        coalesce(error_type, '(none)') as reason,
        count(*) as attempts
    from events
    where event in ('job.retry_scheduled', 'job.dead')
        and occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
    group by 1, 2
),
summed as (
    select grains.window_start, counted.reason, sum(counted.attempts) as attempts
    from counted
    inner join grains_of($starts, $ends, $grain_us) as grains on grains.grain = counted.grain
    group by grains.window_start, counted.reason
)
select
    windows.window_start,
    windows.window_end,
    summed.reason,
    cast(coalesce(summed.attempts, 0) as bigint) as attempts
from windows_of($starts, $ends, $covered) as windows
left join summed on summed.window_start = windows.window_start
order by windows.window_start, summed.reason
