-- one row a window and reason with failed attempts in it; a window without any has one row, reason null
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end
),
failed as (
    select occurred_at, coalesce(error_type, '(none)') as reason
    from events
    where event in ('job.retry_scheduled', 'job.dead')
)
select
    windows.window_start,
    windows.window_end,
    failed.reason,
    count(failed.reason) as attempts
from windows
left join failed on failed.occurred_at >= windows.window_start and failed.occurred_at < windows.window_end
group by windows.window_start, windows.window_end, failed.reason
order by windows.window_start, failed.reason
