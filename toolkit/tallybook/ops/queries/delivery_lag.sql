-- one row: how long deliveries took from when they were due, in s, and how far the cloud's clock is ahead of this one's
with lags as (
    select count(total_s) as deliveries, quantile_cont(total_s, 0.99) as lag_s
    from jobs
    where status = 'done' and total_s >= 0
),
stamped as (
    select
        coalesce(
            epoch_us(try_cast(change.last_modified as timestamptz)),
            epoch_us(try_strptime(change.last_modified, '%a, %d %b %Y %H:%M:%S GMT'))
        ) as stamp_us,
        case when try_strptime(change.last_modified, '%a, %d %b %Y %H:%M:%S GMT') is null then 0 else 1000000 end as step_us,
        epoch_us(done.started_at) as begin_us,
        epoch_us(done.occurred_at) as end_us
    from events as change
    inner join events as done on done.job_id = change.job_id and done.event = 'job.done'
    where change.event = 'cache.put' and change.last_modified is not null and done.started_at is not null
),
skews as (
    select
        count(*) as stamps,
        median(case
            when stamp_us + step_us < begin_us then stamp_us + step_us - begin_us
            when stamp_us > end_us then stamp_us - end_us
            else 0
        end) / 1000000.0 as skew_s
    from stamped
    where stamp_us is not null
)
select *
from lags
cross join skews
