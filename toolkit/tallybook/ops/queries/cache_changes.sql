-- one row a window: writes and invalidations in it, and the keys in the cache at its end
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end
),
steps as (
    select
        occurred_at,
        change,
        case when change = 'put' then 1 else 0 end
            - case when lag(change) over (partition by key order by position) = 'put' then 1 else 0 end as keys
    from cache_history
),
moved as (
    select
        windows.window_end,
        sum(steps.keys) as keys,
        count(*) filter (where change = 'put' and steps.occurred_at >= windows.window_start) as puts,
        count(*) filter (where change = 'invalidated' and steps.occurred_at >= windows.window_start) as invalidations
    from steps
    inner join windows on steps.occurred_at < windows.window_end
        and (steps.occurred_at >= windows.window_start or windows.window_start = (select min(window_start) from windows))
    group by windows.window_end
)
select
    windows.window_start,
    windows.window_end,
    coalesce(moved.puts, 0) as puts,
    coalesce(moved.invalidations, 0) as invalidations,
    cast(coalesce(sum(moved.keys) over earlier, 0) as bigint) as keys
from windows
left join moved on moved.window_end = windows.window_end
window earlier as (order by windows.window_start rows between unbounded preceding and current row)
order by windows.window_start
