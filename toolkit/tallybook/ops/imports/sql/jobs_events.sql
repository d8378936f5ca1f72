-- one row an event: enqueued, leased where a job was started, and how it ended where it did
select
    4 * coalesce(submit_us, start_us, end_us) as position,
    seq,
    'job.enqueued' as event,
    make_timestamptz(coalesce(submit_us, start_us, end_us)) as occurred_at,
    job_id,
    topic,
    correlation_id,
    null::varchar as worker,
    null::bigint as lease_token,
    null::timestamptz as locked_until,
    null::double as lease_ms,
    null::timestamptz as started_at,
    null::double as duration_ms,
    null::bigint as attempt_count,
    null::varchar as error_type,
    null::varchar as error,
    case when submit_us is null then 'submit_unknown' end as reason
from jobs_read
union all
select
    4 * greatest(coalesce(submit_us, start_us), start_us) + 1,
    seq,
    'job.leased',
    make_timestamptz(start_us),
    job_id,
    topic,
    correlation_id,
    worker,
    1,
    make_timestamptz(until_us),
    (until_us - start_us) / 1000.0,
    make_timestamptz(start_us),
    null,
    0,
    null,
    null,
    null
from jobs_read
where start_us is not null
union all
select
    4 * greatest(submit_us, start_us, end_us) + 2,
    seq,
    case status when 'done' then 'job.done' when 'dead' then 'job.dead' else 'job.cancelled' end,
    make_timestamptz(end_us),
    job_id,
    topic,
    correlation_id,
    worker,
    case when start_us is not null then 1 end,
    null,
    null,
    make_timestamptz(start_us),
    (end_us - start_us) / 1000.0,
    case when start_us is not null then 1 else 0 end,
    case when status <> 'done' then word end,
    error,
    null
from jobs_read
where end_us is not null
