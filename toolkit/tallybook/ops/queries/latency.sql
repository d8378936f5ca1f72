-- one row a window and group of the jobs enqueued in it; times in seconds, percentiles by linear interpolation
with clock as (
    select max(occurred_at) as last_at
    from events
),
timed as (
    select *, grain_of(created_at, $starts, $grain_us) as grain
    from timed_jobs($since, $until, $by)
),
measured as (
    select
        grains.window_start,
        timed."group",
        count(*) filter (where state <> 'open') as n,
        count(*) filter (where state = 'open') as open,
        min(due_at) filter (where state = 'open') as oldest_due_at,
        quantile_cont(wait_us, [0.5, 0.9, 0.95, 0.99]) as wait,
        avg(wait_us) as wait_mean,
        max(wait_us) as wait_max,
        count(*) filter (where wait_us < 0) as wait_negative,
        quantile_cont(run_us, [0.5, 0.9, 0.95, 0.99]) as run,
        avg(run_us) as run_mean,
        max(run_us) as run_max,
        count(*) filter (where run_us < 0) as run_negative,
        quantile_cont(total_us, [0.5, 0.9, 0.95, 0.99]) as total,
        avg(total_us) as total_mean,
        max(total_us) as total_max,
        count(*) filter (where total_us < 0) as total_negative
    from timed
    inner join grains_of($starts, $ends, $grain_us) as grains on grains.grain = timed.grain
    group by grains.window_start, timed."group"
),
cells as (
    select windows.window_start, windows.window_end, names."group"
    from windows_of($starts, $ends, $covered) as windows
    cross join (select '' as "group" where $by = '' union select "group" from measured) as names
)
select
    cells.window_start,
    cells.window_end,
    cells."group",
    coalesce(n, 0) as n,
    coalesce(open, 0) as open,
    (epoch_us(clock.last_at) - epoch_us(oldest_due_at)) / 1000000.0 as open_oldest_s,
    wait_mean / 1000000.0 as wait_mean_s,
    wait[1] / 1000000.0 as wait_p50_s,
    wait[2] / 1000000.0 as wait_p90_s,
    wait[3] / 1000000.0 as wait_p95_s,
    wait[4] / 1000000.0 as wait_p99_s,
    wait_max / 1000000.0 as wait_max_s,
    coalesce(wait_negative, 0) as wait_negative,
    run_mean / 1000000.0 as run_mean_s,
    run[1] / 1000000.0 as run_p50_s,
    run[2] / 1000000.0 as run_p90_s,
    run[3] / 1000000.0 as run_p95_s,
    run[4] / 1000000.0 as run_p99_s,
    run_max / 1000000.0 as run_max_s,
    coalesce(run_negative, 0) as run_negative,
    total_mean / 1000000.0 as total_mean_s,
    total[1] / 1000000.0 as total_p50_s,
    total[2] / 1000000.0 as total_p90_s,
    total[3] / 1000000.0 as total_p95_s,
    total[4] / 1000000.0 as total_p99_s,
    total_max / 1000000.0 as total_max_s,
    coalesce(total_negative, 0) as total_negative
from cells
cross join clock
left join measured on measured.window_start = cells.window_start and measured."group" = cells."group"
order by cells.window_start, cells."group"
