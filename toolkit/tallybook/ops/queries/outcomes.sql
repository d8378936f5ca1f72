-- one row an error type and HTTP status of the runs that failed between $since and $until
select
    error_type,
    http_status,
    count(*) filter (where event = 'job.retry_scheduled') as retried,
    count(*) filter (where event = 'job.dead') as dead,
    count(distinct job_id) as jobs,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at,
    arg_min(job_id, position) as example_job_id,
    arg_min(error, position) as example_error
from events
where event in ('job.retry_scheduled', 'job.dead')
    and occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
group by error_type, http_status
order by retried + dead desc, error_type, http_status
