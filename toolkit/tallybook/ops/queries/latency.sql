-- one row a window and group of the jobs enqueued in it; times in seconds, percentiles by linear interpolation
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end
),
clock as (
    select max(occurred_at) as last_at
    from events
),
grouped as (
    select
        *,
        case $by
            when 'topic' then topic
            when 'worker' then coalesce(worker, '(never claimed)')
            else ''
        end as "group"
    from jobs
),
cells as (
    select windows.window_start, windows.window_end, names."group"
    from windows
    cross join (select '' as "group" where $by = '' union select "group" from grouped) as names
),
measured as (
    select
        cells.window_start,
        cells.window_end,
        cells."group",
        grouped.job_id,
        grouped.status,
        grouped.wait_s,
        grouped.run_s,
        grouped.total_s,
        (epoch_us(clock.last_at) - epoch_us(grouped.due_at)) / 1000000.0 as age_s
    from cells
    cross join clock
    left join grouped
        on grouped.created_at >= cells.window_start and grouped.created_at < cells.window_end
        and grouped."group" = cells."group"
)
select
    window_start,
    window_end,
    "group",
    count(job_id) filter (where status not in ('pending', 'leased')) as n,
    count(job_id) filter (where status in ('pending', 'leased')) as open,
    max(age_s) filter (where status in ('pending', 'leased')) as open_oldest_s,
    avg(wait_s) as wait_mean_s,
    quantile_cont(wait_s, 0.5) as wait_p50_s,
    quantile_cont(wait_s, 0.9) as wait_p90_s,
    quantile_cont(wait_s, 0.95) as wait_p95_s,
    quantile_cont(wait_s, 0.99) as wait_p99_s,
    max(wait_s) as wait_max_s,
    count(*) filter (where wait_s < 0) as wait_negative,
    avg(run_s) as run_mean_s,
    quantile_cont(run_s, 0.5) as run_p50_s,
    quantile_cont(run_s, 0.9) as run_p90_s,
    quantile_cont(run_s, 0.95) as run_p95_s,
    quantile_cont(run_s, 0.99) as run_p99_s,
    max(run_s) as run_max_s,
    count(*) filter (where run_s < 0) as run_negative,
    avg(total_s) as total_mean_s,
    quantile_cont(total_s, 0.5) as total_p50_s,
    quantile_cont(total_s, 0.9) as total_p90_s,
    quantile_cont(total_s, 0.95) as total_p95_s,
    quantile_cont(total_s, 0.99) as total_p99_s,
    max(total_s) as total_max_s,
    count(*) filter (where total_s < 0) as total_negative
from measured
group by window_start, window_end, "group"
order by window_start, "group"
