-- one row an event of what $id names: a job, a correlation id, an idempotency key or a cache key
with named_jobs as (
    select distinct job_id
    from events
    where job_id is not null
        and (job_id = $id or correlation_id = $id or idempotency_key = $id or key = $id)
),
told as (
    select *
    from events
    where job_id in (select job_id from named_jobs) or correlation_id = $id or key = $id
)
select
    (epoch_us(occurred_at) - min(epoch_us(occurred_at)) over ()) / 1000000.0 as at_s,
    occurred_at,
    event,
    job_id,
    worker,
    lease_token,
    concat_ws(' · ',
        case when event = 'job.enqueued' then 'key ' || idempotency_key end,
        key,
        case when version is not null then 'version ' || (version ->> '$') end,
        case when attempt_count is not null and event <> 'job.leased' then 'attempt ' || attempt_count end,
        case when duration_ms is not null then 'ran ' || round(duration_ms, 1) || ' ms' end,
        case when http_status is not null then 'HTTP ' || http_status end,
        endpoint,
        case when replayed then 'replayed' end,
        case when settle is not null then 'settle ' || settle end,
        error_type,
        error,
        reason,
        case when delay_ms is not null then 'again in ' || round(delay_ms) || ' ms' end,
        case when event in ('job.leased', 'job.extended') then 'until ' || strftime(locked_until, '%H:%M:%S.%g') end
    ) as what,
    seq,
    writer
from told
order by position
