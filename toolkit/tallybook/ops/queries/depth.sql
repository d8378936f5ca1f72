-- one row a window: jobs pending, leased and dead at its end
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end
),
changes as (
    select
        job_id,
        position,
        occurred_at,
        case
            when event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired',
                           'job.released', 'job.requeued') then 'pending'
            when event = 'job.leased' then 'leased'
            when event = 'job.dead' then 'dead'
            else 'gone'
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
        lag(status, 1, 'gone') over (partition by job_id order by position) as status_before
    from changes
),
moved as (
    select
        windows.window_end,
        sum(case when status = 'pending' then 1 else 0 end - case when status_before = 'pending' then 1 else 0 end)
            as pending,
        sum(case when status = 'leased' then 1 else 0 end - case when status_before = 'leased' then 1 else 0 end)
            as leased,
        sum(case when status = 'dead' then 1 else 0 end - case when status_before = 'dead' then 1 else 0 end)
            as dead
    from steps
    inner join windows on steps.occurred_at < windows.window_end
        and (steps.occurred_at >= windows.window_start or windows.window_start = (select min(window_start) from windows))
    group by windows.window_end
)
select
    windows.window_start,
    windows.window_end,
    cast(coalesce(sum(moved.pending) over earlier, 0) as bigint) as pending,
    cast(coalesce(sum(moved.leased) over earlier, 0) as bigint) as leased,
    cast(coalesce(sum(moved.dead) over earlier, 0) as bigint) as dead
from windows
left join moved on moved.window_end = windows.window_end
window earlier as (order by windows.window_start rows between unbounded preceding and current row)
order by windows.window_start
