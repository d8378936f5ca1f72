-- one row a job with a run that failed and was scheduled again; only in the window $since to $until, where given
select
    events.job_id,
    jobs.idempotency_key,
    count(*) as times,
    min(events.occurred_at) as first_at,
    max(events.occurred_at) as last_at,
    string_agg(distinct coalesce(events.error_type, 'unknown'), ', ' order by coalesce(events.error_type, 'unknown'))
        as detail,
    list(events.seq order by events.position) as evidence
from events
left join jobs on jobs.job_id = events.job_id
where events.event = 'job.retry_scheduled'
    and ($since::timestamptz is null or events.occurred_at >= $since::timestamptz)
    and ($until::timestamptz is null or events.occurred_at < $until::timestamptz)
group by events.job_id, jobs.idempotency_key
order by first_at, events.job_id
