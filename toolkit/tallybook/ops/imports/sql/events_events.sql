-- one row an event: enqueued, then each step of the job that is told for the first time
select
    8 * place as position,
    coalesce(submit_seq, first_seq) as seq,
    'job.enqueued' as event,
    make_timestamptz(coalesce(submit_us, first_us)) as occurred_at,
    job_id,
    topic,
    correlation_id,
    null::varchar as worker,
    null::bigint as lease_token,
    null::timestamptz as locked_until,
    null::double as lease_ms,
    null::timestamptz as started_at,
    null::double as duration_ms,
    null::bigint as attempt_count,
    null::varchar as error_type,
    null::varchar as error,
    case when submit_us is null then 'submit_unknown' end as reason
from jobs_read
union all
select
    8 * told.place + 1,
    told.seq,
    case told.step
        when 'start' then 'job.leased'
        when 'done' then 'job.done'
        when 'dead' then 'job.dead'
        when 'cancelled' then 'job.cancelled'
        when 'retry' then 'job.retry_scheduled'
        when 'release' then 'job.released'
        when 'requeue' then 'job.requeued'
    end,
    make_timestamptz(told.at_us),
    told.id,
    jobs_read.topic,
    jobs_read.correlation_id,
    case when told.kind <> 'requeue' then told.run_worker end,
    told.lease_token,
    case when told.step = 'start' then make_timestamptz(told.until_us) end,
    case when told.step = 'start' then (told.until_us - told.at_us) / 1000.0 end,
    make_timestamptz(told.start_us),
    case when told.kind = 'end' then (told.at_us - told.start_us) / 1000.0 end,
    case when told.kind = 'start' then told.lease_token - 1 when told.kind = 'end' then told.lease_token end,
    case when told.step in ('dead', 'cancelled', 'retry') then told.word end,
    told.error,
    null
from told
inner join jobs_read on jobs_read.job_id = told.id
where told.nth = 1 and told.kind <> 'submit'
order by position
