-- one row a job that has not ended
select
    job_id,
    idempotency_key,
    attempt_count as times,
    created_at as first_at,
    updated_at as last_at,
    status as detail,
    [enqueued_seq] as evidence
from jobs
where status in ('pending', 'leased') and pruned_at is null
order by created_at, job_id
