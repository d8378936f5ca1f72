-- one row a job: its first event, with the columns that all events of an import have
create or replace view enqueued as
select
    position,
    seq,
    'job.enqueued' as event,
    make_timestamptz(enqueued_us) as occurred_at,
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
