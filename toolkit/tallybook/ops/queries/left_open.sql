-- one row a job that arrived before $since and has not ended before $until
with standing as (
    select
        job_id,
        min(occurred_at) filter (where event = 'job.enqueued') as arrived_at,
        any_value(idempotency_key) filter (where event = 'job.enqueued') as idempotency_key,
        any_value(topic) filter (where event = 'job.enqueued') as topic,
        arg_max(event, position) as event
    from events
    where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired', 'job.released',
                    'job.requeued', 'job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded', 'job.pruned')
        and occurred_at < $until::timestamptz
    group by job_id
)
select job_id, idempotency_key, topic, arrived_at
from standing
where arrived_at < $since::timestamptz
    and event not in ('job.done', 'job.dead', 'job.cancelled', 'job.discarded', 'job.pruned')
order by arrived_at, job_id
