-- one row a job that was ever enqueued, as the last event of the log leaves it; a pruned job stays
with enqueued as (
    select
        *,
        case when reason is distinct from 'submit_unknown' then coalesce(next_attempt_at, occurred_at) end as due_at
    from events
    where event = 'job.enqueued'
    qualify row_number() over (partition by job_id order by position) = 1
),
changes as (
    select
        job_id,
        position,
        occurred_at,
        worker,
        attempt_count,
        rescue_count,
        next_attempt_at,
        error,
        error_type,
        lease_token,
        locked_until,
        result,
        started_at,
        duration_ms,
        event,
        case
            when event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired',
                           'job.released', 'job.requeued') then 'pending'
            when event in ('job.leased', 'job.extended') then 'leased'
            when event = 'job.done' then 'done'
            when event = 'job.dead' then 'dead'
            when event in ('job.cancelled', 'job.discarded') then 'cancelled'
        end as status
    from events
    where job_id is not null and event like 'job.%'
),
folded as (
    select
        job_id,
        arg_max(status, position) filter (where status is not null) as status,
        max(occurred_at) filter (where status is not null) as updated_at,
        arg_max(coalesce(attempt_count, 0), position)
            filter (where attempt_count is not null or event = 'job.requeued') as attempt_count,
        arg_max(coalesce(rescue_count, 0), position)
            filter (where rescue_count is not null or event = 'job.requeued') as rescue_count,
        max(lease_token) filter (where event = 'job.leased') as lease_token,
        arg_max(worker, position) filter (where event in ('job.leased', 'job.extended')) as worker,
        arg_max(locked_until, position) filter (where event in ('job.leased', 'job.extended')) as locked_until,
        arg_max_null(next_attempt_at, position)
            filter (where status is not null and event not in ('job.leased', 'job.extended')) as next_attempt_at,
        arg_max_null(error, position)
            filter (where event in ('job.retry_scheduled', 'job.dead')) as last_error,
        arg_max_null(error_type, position)
            filter (where event in ('job.retry_scheduled', 'job.dead')) as error_type,
        arg_max(result, position) filter (where event = 'job.done') as result,
        min(occurred_at) filter (where event = 'job.leased') as first_leased_at,
        min(started_at) as first_started_at,
        arg_max_null(started_at, position) filter (where event in ('job.done', 'job.dead')) as started_at,
        arg_max_null(duration_ms, position) filter (where event in ('job.done', 'job.dead')) as duration_ms,
        max(occurred_at) filter (where status in ('done', 'dead', 'cancelled')) as ended_at,
        count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')) as settles,
        count(*) filter (where event = 'job.retry_scheduled') as retries,
        count(*) filter (where event = 'job.lease_expired') as rescues,
        count(*) filter (where event = 'job.settle_refused') as refused,
        count(*) filter (where event = 'job.deduplicated') as deduplicated,
        max(occurred_at) filter (where event = 'job.pruned') as pruned_at
    from changes
    group by job_id
)
select
    enqueued.job_id,
    enqueued.node_id,
    enqueued.topic,
    enqueued.idempotency_key,
    folded.status,
    enqueued.payload,
    enqueued.payload_digest,
    coalesce(enqueued.priority, 0) as priority,
    coalesce(enqueued.max_attempts, 10) as max_attempts,
    enqueued.correlation_id,
    enqueued.enqueued_from,
    enqueued.resource,
    enqueued.ordering_key,
    enqueued.expires_at,
    enqueued.timeout_s,
    coalesce(folded.attempt_count, 0) as attempt_count,
    coalesce(folded.rescue_count, 0) as rescue_count,
    coalesce(folded.lease_token, 0) as lease_token,
    folded.worker,
    case when folded.status = 'leased' then folded.worker end as locked_by,
    case when folded.status = 'leased' then folded.locked_until end as locked_until,
    folded.next_attempt_at,
    folded.last_error,
    folded.error_type,
    folded.result,
    enqueued.position,
    enqueued.seq as enqueued_seq,
    enqueued.occurred_at as created_at,
    enqueued.due_at,
    folded.first_leased_at,
    folded.first_started_at,
    case when folded.status in ('done', 'dead') then folded.started_at end as started_at,
    case when folded.status in ('done', 'dead', 'cancelled') then folded.ended_at end as finished_at,
    folded.updated_at,
    folded.pruned_at,
    folded.retries,
    folded.rescues,
    folded.refused,
    folded.deduplicated,
    (epoch_us(folded.first_started_at) - epoch_us(enqueued.due_at)) / 1000000.0 as wait_s,
    case when folded.status in ('done', 'dead') then folded.duration_ms / 1000.0 end as run_s,
    case when folded.status in ('done', 'dead') then
        (epoch_us(folded.ended_at) - epoch_us(enqueued.due_at)) / 1000000.0
    end as total_s
from enqueued
inner join folded on folded.job_id = enqueued.job_id
