-- one row a job that lies in the dead letters now; only and died in the window $since to $until, where given
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
    and ($since::timestamptz is null or jobs.finished_at >= $since::timestamptz)
    and ($until::timestamptz is null or jobs.finished_at < $until::timestamptz)
group by all
order by jobs.finished_at, jobs.job_id
