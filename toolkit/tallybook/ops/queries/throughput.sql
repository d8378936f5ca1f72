-- one row a window and group: jobs that arrived, runs that started, jobs that were completed between $since and $until
with ended as (
    select job_id, lease_token, started_at, case $by when 'topic' then topic when 'worker' then worker else '' end as "group"
    from events
    where event in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed', 'job.cancelled')
        and started_at is not null
),
told as (
    select
        job_id,
        lease_token,
        min(started_at) as started_at,
        any_value(case $by when 'topic' then topic when 'worker' then worker else '' end) as "group"
    from events
    where event in ('job.extended', 'job.settle_refused') and started_at is not null
    group by job_id, lease_token
),
told_only as (
    select *
    from told
    where not exists (
        from (from ended where job_id in (select job_id from told)) as settled
        where settled.job_id = told.job_id and settled.lease_token = told.lease_token
    )
),
counted as (
    select
        grain_of(occurred_at, $starts, $grain_us) as grain,
        coalesce(case $by when 'topic' then topic when 'worker' then worker else '' end, '(none)') as "group",
        count(*) filter (where event = 'job.enqueued') as arrivals,
        0 as starts,
        count(*) filter (where event <> 'job.enqueued') as completions
    from events
    where event in ('job.enqueued', 'job.done', 'job.dead')
        and occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
    group by 1, 2
    union all
    select
        grain_of(started_at, $starts, $grain_us) as grain,
        coalesce("group", '(none)') as "group",
        0 as arrivals,
        count(*) as starts,
        0 as completions
    from (
        select started_at, "group" from ended
        union all
        select started_at, "group" from told_only
    )
    where started_at >= $since::timestamptz and started_at < $until::timestamptz
    group by 1, 2
),
summed as (
    select
        grains.window_start,
        counted."group",
        sum(arrivals) as arrivals,
        sum(starts) as starts,
        sum(completions) as completions
    from counted
    inner join grains_of($starts, $ends, $grain_us) as grains on grains.grain = counted.grain
    group by grains.window_start, counted."group"
),
cells as (
    select windows.*, names."group"
    from windows_of($starts, $ends, $covered) as windows
    cross join (select '' as "group" where $by = '' union select "group" from summed) as names
)
select
    cells.window_start,
    cells.window_end,
    cells.covered_s,
    cells."group",
    cast(coalesce(arrivals, 0) as bigint) as arrivals,
    cast(coalesce(starts, 0) as bigint) as starts,
    cast(coalesce(completions, 0) as bigint) as completions,
    coalesce(arrivals, 0) / cells.covered_s as arrivals_per_s,
    coalesce(starts, 0) / cells.covered_s as starts_per_s,
    coalesce(completions, 0) / cells.covered_s as completions_per_s
from cells
left join summed on summed.window_start = cells.window_start and summed."group" = cells."group"
order by cells.window_start, cells."group"
