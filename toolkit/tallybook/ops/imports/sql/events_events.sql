-- one row an event: enqueued, then each step of the job that is told for the first time
from (
    from enqueued
    union all by name
    select
        8 * told.place + 1 as position,
        told.seq,
        case told.step
            when 'start' then 'job.leased'
            when 'done' then 'job.done'
            when 'dead' then 'job.dead'
            when 'cancelled' then 'job.cancelled'
            when 'retry' then 'job.retry_scheduled'
            when 'release' then 'job.released'
            when 'requeue' then 'job.requeued'
        end as event,
        make_timestamptz(told.at_us) as occurred_at,
        told.id as job_id,
        jobs_read.topic,
        jobs_read.correlation_id,
        case when told.kind <> 'requeue' then told.run_worker end as worker,
        told.lease_token,
        case when told.step = 'start' then make_timestamptz(told.until_us) end as locked_until,
        case when told.step = 'start' then (told.until_us - told.at_us) / 1000.0 end as lease_ms,
        make_timestamptz(told.start_us) as started_at,
        case when told.kind = 'end' then (told.at_us - told.start_us) / 1000.0 end as duration_ms,
        case
            when told.kind = 'start' then told.lease_token - 1
            when told.kind = 'end' then told.lease_token
        end as attempt_count,
        case when told.step in ('dead', 'cancelled', 'retry') then told.word end as error_type,
        told.error
    from told
    inner join jobs_read on jobs_read.job_id = told.id
    where told.nth = 1 and told.kind <> 'submit'
    order by position
)
union all by name
select
    8 * placed.place + cast(placed.kind <> 'submit' as bigint) as position,
    placed.seq,
    case placed.step
        when 'submit' then 'job.enqueued'
        when 'start' then 'job.leased'
        when 'done' then 'job.done'
        when 'dead' then 'job.dead'
        when 'cancelled' then 'job.cancelled'
    end as event,
    make_timestamptz(placed.at_us) as occurred_at,
    placed.id as job_id,
    coalesce(placed.topic, 'job') as topic,
    placed.correlation_id,
    case when placed.kind <> 'submit' then coalesce(placed.worker, lives.start_worker) end as worker,
    case when placed.kind <> 'submit' and lives.starts = 1 then 1 end as lease_token,
    case when placed.kind = 'start' then make_timestamptz(placed.until_us) end as locked_until,
    case when placed.kind = 'start' then (placed.until_us - placed.at_us) / 1000.0 end as lease_ms,
    case when placed.kind <> 'submit' then make_timestamptz(lives.start_us) end as started_at,
    case when placed.kind = 'end' then (placed.at_us - lives.start_us) / 1000.0 end as duration_ms,
    case
        when placed.kind = 'start' then 0
        when placed.kind = 'end' and lives.starts = 1 then 1
    end as attempt_count,
    case when placed.step in ('dead', 'cancelled') then placed.word end as error_type,
    case when placed.kind <> 'submit' then placed.error end as error
from placed
inner join lives on lives.id = placed.id
union all by name
select
    8 * placed.place as position,
    placed.seq,
    'job.enqueued' as event,
    make_timestamptz(placed.at_us) as occurred_at,
    placed.id as job_id,
    coalesce(placed.topic, 'job') as topic,
    placed.correlation_id,
    'submit_unknown' as reason
from placed
inner join lives on lives.id = placed.id and lives.first_place = placed.place
where lives.submits = 0
