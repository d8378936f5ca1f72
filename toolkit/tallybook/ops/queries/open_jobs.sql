-- one row a job that has not ended; only and arrived in the window $since to $until, where given
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
    and ($since::timestamptz is null or created_at >= $since::timestamptz)
    and ($until::timestamptz is null or created_at < $until::timestamptz)
order by created_at, job_id
