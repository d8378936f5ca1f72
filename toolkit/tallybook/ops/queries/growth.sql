-- one row a window and part of the log with events between $since and $until: events; a window without has null, 0
with counted as (
    select
        grain_of(occurred_at, $starts, $grain_us) as grain,
        case
            when event like 'job.%' then 'jobs'
            when event like 'cache.%' then 'cache'
            when event like 'log.%' then 'log'
            else 'workers and topics'
        end as part,
        count(*) as events
    from events
    where occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
    group by 1, 2
),
summed as (
    select grains.window_start, counted.part, sum(counted.events) as events
    from counted
    inner join grains_of($starts, $ends, $grain_us) as grains on grains.grain = counted.grain
    group by 1, 2
)
select
    windows.window_start,
    windows.window_end,
    summed.part,
    cast(coalesce(summed.events, 0) as bigint) as events
from windows_of($starts, $ends, $covered) as windows
left join summed on summed.window_start = windows.window_start
order by windows.window_start, summed.part
