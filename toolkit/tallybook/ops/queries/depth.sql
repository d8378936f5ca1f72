-- one row a window: jobs pending, leased and dead at its end, or at $until where that is before
with changes as (
    select
        job_id,
        position,
        occurred_at,
        case
            when event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired',
                           'job.released', 'job.requeued') then 1
            when event = 'job.leased' then 2
            when event = 'job.dead' then 3
            else 0
        end as status
    from events
    where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired', 'job.released',
                    'job.requeued', 'job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded',
                    'job.pruned')
),
steps as (
    select
        occurred_at,
        status,
        lag(status, 1, 0) over (partition by job_id order by position) as status_before
    from changes
),
moved as (
    select
        greatest(grain_of(occurred_at, $starts, $grain_us), 0) as grain,
        count(*) filter (where status = 1) - count(*) filter (where status_before = 1) as pending,
        count(*) filter (where status = 2) - count(*) filter (where status_before = 2) as leased,
        count(*) filter (where status = 3) - count(*) filter (where status_before = 3) as dead
    from steps
    where status <> status_before and occurred_at < $until::timestamptz
    group by 1
),
summed as (
    select grains.window_start, sum(pending) as pending, sum(leased) as leased, sum(dead) as dead
    from moved
    inner join grains_of($starts, $ends, $grain_us) as grains on grains.grain = moved.grain
    group by grains.window_start
)
select
    windows.window_start,
    windows.window_end,
    cast(coalesce(sum(pending) over earlier, 0) as bigint) as pending,
    cast(coalesce(sum(leased) over earlier, 0) as bigint) as leased,
    cast(coalesce(sum(dead) over earlier, 0) as bigint) as dead
from windows_of($starts, $ends, $covered) as windows
left join summed on summed.window_start = windows.window_start
window earlier as (order by windows.window_start rows between unbounded preceding and current row)
order by windows.window_start
