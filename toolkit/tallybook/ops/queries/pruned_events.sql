-- one row an event of the Parquet files $files that names one of $ids, or is of a job of which another event does
with named_jobs as (
    select distinct job_id
    from read_parquet($files)
    where job_id is not null
        and (list_contains($ids, job_id) or list_contains($ids, correlation_id) or list_contains($ids, idempotency_key))
)
select *
from read_parquet($files)
where job_id in (select job_id from named_jobs) or list_contains($ids, correlation_id)
