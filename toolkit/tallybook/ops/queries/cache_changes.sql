-- one row a window: writes and invalidations between $since and $until, and the keys in the cache at its end
with steps as (
    select
        occurred_at,
        change,
        case when change = 'put' then 1 else 0 end
            - case when lag(change) over (partition by key order by position) = 'put' then 1 else 0 end as keys
    from cache_history
),
moved as (
    select
        greatest(grain_of(occurred_at, $starts, $grain_us), 0) as grain,
        sum(keys) as keys,
        count(*) filter (where change = 'put' and occurred_at >= $since::timestamptz) as puts,
        count(*) filter (where change = 'invalidated' and occurred_at >= $since::timestamptz) as invalidations
    from steps
    where occurred_at < $until::timestamptz
    group by 1
),
summed as (
    select
        grains.window_start,
        sum(moved.keys) as keys,
        sum(moved.puts) as puts,
        sum(moved.invalidations) as invalidations
    from moved
    inner join grains_of($starts, $ends, $grain_us) as grains on grains.grain = moved.grain
    group by grains.window_start
)
select
    windows.window_start,
    windows.window_end,
    cast(coalesce(summed.puts, 0) as bigint) as puts,
    cast(coalesce(summed.invalidations, 0) as bigint) as invalidations,
    cast(coalesce(sum(summed.keys) over earlier, 0) as bigint) as keys
from windows_of($starts, $ends, $covered) as windows
left join summed on summed.window_start = windows.window_start
window earlier as (order by windows.window_start rows between unbounded preceding and current row)
order by windows.window_start
