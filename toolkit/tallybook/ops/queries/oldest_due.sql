-- one row a topic with jobs that are pending and due at $until: how many, and how long the oldest is due
with standing as (
    select
        job_id,
        coalesce(any_value(topic) filter (where event = 'job.enqueued'), arg_min(topic, position)) as topic,
        arg_max(event, position) as event,
        arg_max_null(next_attempt_at, position) as next_attempt_at,
        max(occurred_at) as changed_at
    from events
    where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired', 'job.released',
                    'job.requeued', 'job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded', 'job.pruned')
        and occurred_at < $until::timestamptz
    group by job_id
),
due as (
    select topic, job_id, coalesce(next_attempt_at, changed_at) as due_at
    from standing
    where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired', 'job.released', 'job.requeued')
        and coalesce(next_attempt_at, changed_at) <= $until::timestamptz
)
select
    topic,
    count(*) as jobs,
    (epoch_us($until::timestamptz) - epoch_us(min(due_at))) / 1000000.0 as oldest_s,
    arg_min(job_id, due_at) as oldest_job_id
from due
group by topic
order by oldest_s desc, topic
