-- one row a window and worker that held a lease in it: seconds held between $since and $until, leases on average;
-- a window in which none was held has one row, worker null
with clock as (
    select max(occurred_at) as last_at
    from events
),
held as (
    select
        leases.worker,
        greatest(leases.leased_at, $since::timestamptz) as from_at,
        least(coalesce(leases.ended_at, clock.last_at), $until::timestamptz) as over_at
    from leases
    cross join clock
),
shares as (
    select
        windows.window_start,
        held.worker,
        sum(epoch_us(least(held.over_at, windows.window_end)) - epoch_us(greatest(held.from_at, windows.window_start)))
            / 1000000.0 as held_s
    from windows_of($starts, $ends, $covered) as windows
    inner join held on held.from_at < windows.window_end and held.over_at > windows.window_start
    group by windows.window_start, held.worker
)
select
    windows.window_start,
    windows.window_end,
    shares.worker,
    coalesce(shares.held_s, 0) as held_s,
    coalesce(shares.held_s, 0) / windows.covered_s as held
from windows_of($starts, $ends, $covered) as windows
left join shares on shares.window_start = windows.window_start
order by windows.window_start, shares.worker
