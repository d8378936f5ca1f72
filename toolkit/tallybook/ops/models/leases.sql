-- one row a lease: (job_id, lease_token), from the claim to whatever ended it
with claims as (
    select *
    from events
    where event = 'job.leased'
    qualify row_number() over (partition by job_id, lease_token order by position) = 1
),
cancels as (
    select
        cancelled.job_id,
        max(claims.lease_token) as lease_token,
        cancelled.position,
        cancelled.seq,
        cancelled.occurred_at,
        cancelled.event,
        cancelled.started_at,
        cancelled.duration_ms,
        cancelled.reason,
        cancelled.error_type,
        cancelled.endpoint
    from events as cancelled
    inner join claims on claims.job_id = cancelled.job_id and claims.position < cancelled.position
    where cancelled.event = 'job.cancelled'
    group by all
),
ends as (
    select
        job_id, lease_token, position, seq, occurred_at, event,
        started_at, duration_ms, reason, error_type, endpoint
    from events
    where event in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed',
                    'job.released', 'job.lease_expired')
        and lease_token is not null
    union all
    select
        job_id, lease_token, position, seq, occurred_at, event,
        started_at, duration_ms, reason, error_type, endpoint
    from cancels
),
first_ends as (
    select *
    from ends
    qualify row_number() over (partition by job_id, lease_token order by position) = 1
),
extensions as (
    select
        job_id,
        lease_token,
        count(*) as extensions,
        max(locked_until) as locked_until,
        min(started_at) as started_at
    from events
    where event = 'job.extended'
    group by job_id, lease_token
),
refusals as (
    select
        job_id,
        lease_token,
        count(*) as refused,
        min(occurred_at) as refused_at,
        min(started_at) as started_at,
        list(seq order by position) as refused_seqs
    from events
    where event = 'job.settle_refused'
    group by job_id, lease_token
),
followed as (
    select
        job_id,
        lease_token,
        lead(worker) over (partition by job_id order by position) as next_worker,
        lead(occurred_at) over (partition by job_id order by position) as next_leased_at
    from claims
)
select
    claims.job_id,
    claims.lease_token,
    claims.node_id,
    claims.topic,
    claims.correlation_id,
    claims.worker,
    claims.writer,
    claims.occurred_at as leased_at,
    claims.seq as leased_seq,
    claims.lease_ms,
    coalesce(extensions.locked_until, claims.locked_until) as locked_until,
    coalesce(extensions.extensions, 0) as extensions,
    coalesce(first_ends.started_at, refusals.started_at, extensions.started_at, claims.started_at) as started_at,
    first_ends.occurred_at as ended_at,
    first_ends.seq as ended_seq,
    case first_ends.event
        when 'job.done' then 'done'
        when 'job.retry_scheduled' then 'retry'
        when 'job.dead' then 'dead'
        when 'job.snoozed' then 'snoozed'
        when 'job.released' then 'released'
        when 'job.cancelled' then 'cancelled'
        when 'job.lease_expired' then case first_ends.reason
            when 'reboot' then 'reboot'
            when 'worker_dead' then 'worker died'
            else 'expired'
        end
        else 'open'
    end as how,
    first_ends.duration_ms,
    first_ends.error_type,
    first_ends.endpoint,
    coalesce(refusals.refused, 0) as refused,
    refusals.refused_at,
    coalesce(refusals.refused_seqs, []) as refused_seqs,
    followed.next_worker,
    followed.next_leased_at,
    claims.attempt_count,
    claims.rescue_count
from claims
left join first_ends on first_ends.job_id = claims.job_id and first_ends.lease_token = claims.lease_token
left join extensions on extensions.job_id = claims.job_id and extensions.lease_token = claims.lease_token
left join refusals on refusals.job_id = claims.job_id and refusals.lease_token = claims.lease_token
left join followed on followed.job_id = claims.job_id and followed.lease_token = claims.lease_token
