-- one row a job with a result that came too late and was refused; a refused extension is no result; only in the window $since to $until, where given
select
    events.job_id,
    jobs.idempotency_key,
    count(*) as times,
    min(events.occurred_at) as first_at,
    max(events.occurred_at) as last_at,
    arg_max(concat_ws(' ', events.worker, 'settled', events.settle, 'with lease', events.lease_token), events.position)
        as detail,
    list(events.seq order by events.position) as evidence
from events
left join jobs on jobs.job_id = events.job_id
where events.event = 'job.settle_refused' and events.settle is distinct from 'extend'
    and ($since::timestamptz is null or events.occurred_at >= $since::timestamptz)
    and ($until::timestamptz is null or events.occurred_at < $until::timestamptz)
group by events.job_id, jobs.idempotency_key
order by first_at, events.job_id
