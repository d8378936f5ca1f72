-- one row a job of the first: as its events tell it, times as text
with firsts as (
    select job_id
    from told_events
    where event = 'job.enqueued'
    order by seq
    limit $1
)
select
    job_id,
    arg_min(topic, position) as topic,
    replace(arg_max(event, position), 'job.', '') as status,
    cast(min(occurred_at) filter (where event = 'job.enqueued' and reason is null) as varchar) as submitted_at,
    cast(min(started_at) as varchar) as started_at,
    cast(max(occurred_at) filter (where event in ('job.done', 'job.dead', 'job.cancelled')) as varchar) as ended_at,
    max(worker) as worker
from told_events
inner join firsts using (job_id)
group by job_id
order by min(seq)
