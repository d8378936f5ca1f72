-- one row a job that lies in the dead letters now
select
    jobs.job_id,
    jobs.idempotency_key,
    jobs.attempt_count as times,
    jobs.finished_at as first_at,
    jobs.finished_at as last_at,
    concat_ws(': ', jobs.error_type, jobs.last_error) as detail,
    list(events.seq order by events.position) as evidence
from jobs
inner join events on events.job_id = jobs.job_id and events.event = 'job.dead'
where jobs.status = 'dead' and jobs.pruned_at is null
group by all
order by jobs.finished_at, jobs.job_id
