-- one row a job: where it stands by its word, else by its times; what its word contradicts is dropped
create or replace view jobs_read as
with stated as (
    select
        seq,
        coalesce(id, cast(seq as varchar)) as job_id,
        coalesce(topic, 'job') as topic,
        worker,
        word,
        correlation_id,
        error,
        submit_us,
        case when status is null or status <> 'pending' then start_us end as start_us,
        case when status is null or status not in ('pending', 'leased') then end_us end as end_us,
        until_us,
        coalesce(
            status,
            case when end_us is not null then 'done' when start_us is not null then 'leased' else 'pending' end
        ) as status,
        coalesce(
            status = 'pending' and start_us is not null or status in ('pending', 'leased') and end_us is not null,
            false
        ) as contradicted
    from told
)
select *, 4 * coalesce(submit_us, start_us, end_us) as position, coalesce(submit_us, start_us, end_us) as enqueued_us
from stated
