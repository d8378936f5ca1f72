-- one row an error type whose first failed run ever lies between $since and $until: runs, jobs, first_at, an example
select
    coalesce(error_type, '(none)') as error_type,
    count(*) as runs,
    count(distinct job_id) as jobs,
    min(occurred_at) as first_at,
    arg_min(job_id, position) as example_job_id,
    arg_min(error, position) as example_error
from events
where event in ('job.retry_scheduled', 'job.dead') and occurred_at < $until::timestamptz
group by 1
having min(occurred_at) >= $since::timestamptz
order by runs desc, error_type
