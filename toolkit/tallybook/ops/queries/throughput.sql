-- one row a window: jobs that arrived, runs that started, jobs that were completed
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end,
        unnest($covered::double[]) as covered_s
),
moments as (
    select created_at as moment, 'arrival' as kind from jobs
    union all
    select started_at as moment, 'start' as kind from leases where started_at is not null
    union all
    select occurred_at as moment, 'completion' as kind from events where event in ('job.done', 'job.dead')
)
select
    windows.window_start,
    windows.window_end,
    windows.covered_s,
    count(*) filter (where kind = 'arrival') as arrivals,
    count(*) filter (where kind = 'start') as starts,
    count(*) filter (where kind = 'completion') as completions,
    count(*) filter (where kind = 'arrival') / windows.covered_s as arrivals_per_s,
    count(*) filter (where kind = 'start') / windows.covered_s as starts_per_s,
    count(*) filter (where kind = 'completion') / windows.covered_s as completions_per_s
from windows
left join moments on moments.moment >= windows.window_start and moments.moment < windows.window_end
group by windows.window_start, windows.window_end, windows.covered_s
order by windows.window_start
