-- one row a job whose server answered that it had the request already
select
    events.job_id,
    jobs.idempotency_key,
    count(*) as times,
    min(events.occurred_at) as first_at,
    max(events.occurred_at) as last_at,
    string_agg(distinct events.event, ', ' order by events.event) as detail,
    list(events.seq order by events.position) as evidence
from events
left join jobs on jobs.job_id = events.job_id
where events.replayed
group by events.job_id, jobs.idempotency_key
order by first_at, events.job_id
