-- one row an event: enqueued, leased where a job was started, and how it ended where it did
from enqueued
union all by name
select
    4 * greatest(coalesce(submit_us, start_us), start_us) + 1 as position,
    seq,
    'job.leased' as event,
    make_timestamptz(start_us) as occurred_at,
    job_id,
    topic,
    correlation_id,
    worker,
    1 as lease_token,
    make_timestamptz(until_us) as locked_until,
    (until_us - start_us) / 1000.0 as lease_ms,
    make_timestamptz(start_us) as started_at,
    0 as attempt_count
from jobs_read
where start_us is not null
union all by name
select
    4 * greatest(submit_us, start_us, end_us) + 2 as position,
    seq,
    case status when 'done' then 'job.done' when 'dead' then 'job.dead' else 'job.cancelled' end as event,
    make_timestamptz(end_us) as occurred_at,
    job_id,
    topic,
    correlation_id,
    worker,
    case when start_us is not null then 1 end as lease_token,
    make_timestamptz(start_us) as started_at,
    (end_us - start_us) / 1000.0 as duration_ms,
    case when start_us is not null then 1 else 0 end as attempt_count,
    case when status <> 'done' then word end as error_type,
    error
from jobs_read
where end_us is not null
