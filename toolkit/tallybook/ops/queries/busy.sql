-- one row a window and worker that held a lease in it: seconds held, leases on average; else one, worker null
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end
),
clock as (
    select max(occurred_at) as last_at
    from events
),
held as (
    select
        leases.worker,
        leases.leased_at,
        coalesce(leases.ended_at, clock.last_at) as over_at
    from leases
    cross join clock
),
shares as (
    select
        windows.window_start,
        windows.window_end,
        held.worker,
        (epoch_us(least(held.over_at, windows.window_end)) - epoch_us(greatest(held.leased_at, windows.window_start)))
            / 1000000.0 as held_s
    from windows
    left join held on held.leased_at < windows.window_end and held.over_at > windows.window_start
)
select
    window_start,
    window_end,
    worker,
    coalesce(sum(held_s), 0) as held_s,
    coalesce(sum(held_s), 0) * 1000000.0 / (epoch_us(window_end) - epoch_us(window_start)) as held
from shares
group by window_start, window_end, worker
order by window_start, worker
