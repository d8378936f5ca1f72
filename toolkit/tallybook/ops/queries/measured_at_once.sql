-- one row a window and group with jobs that were enqueued in it: counts, and measures in microseconds
create or replace temp macro measured_jobs(since, until, by_what, starts, ends, grain_us) as table
    with timed as (
        select *, grain_of(created_at, starts, grain_us) as grain
        from timed_jobs(since, until, by_what)
    )
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
    inner join grains_of(starts, ends, grain_us) as grains on grains.grain = timed.grain
    group by grains.window_start, timed."group"
