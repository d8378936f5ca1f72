-- one row a lease and status worth a look, as of $at or the end of the log; open leases always have one
with clock as (
    select coalesce($at::timestamptz, max(occurred_at)) as now_at, max(occurred_at) as last_at
    from events
),
-- what the heartbeat files say of the end of the log; nothing of an instant before it
beats as (
    select beat.*
    from (select unnest($beats::struct(worker varchar, beat_at timestamptz, job_id varchar, lease_token bigint,
        started_at timestamptz)[], recursive := true)) as beat
    cross join clock
    where clock.now_at >= clock.last_at
),
alive as (
    select worker, max(beat_at) as beat_at
    from beats
    group by worker
),
-- boots in which the wall clock moved against the clock of the machine
set_boots as (
    select boot_id
    from events
    where boot_id is not null
    group by boot_id
    having max(epoch_us(occurred_at) - boot_us) - min(epoch_us(occurred_at) - boot_us) >= 1000000
),
ends as (
    select job_id, lease_token, occurred_at
    from events
    cross join clock
    where event in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed', 'job.released', 'job.lease_expired',
                    'job.cancelled')
        and lease_token is not null and occurred_at <= clock.now_at
),
-- jobs with a lease that is open, ended late, was taken from its holder or saw the clock set: few, of all
candidates as materialized (
    select claims.job_id
    from events as claims
    cross join clock
    left join ends on ends.job_id = claims.job_id and ends.lease_token = claims.lease_token
    where claims.event = 'job.leased' and claims.occurred_at <= clock.now_at
        and (ends.occurred_at is null or ends.occurred_at > claims.locked_until)
    union
    select job_id
    from events
    where event = 'job.lease_expired'
    union
    select job_id
    from events
    where lease_token is not null and list_contains((select list(boot_id) from set_boots), boot_id)
    group by job_id, lease_token, boot_id
    having max(epoch_us(occurred_at) - boot_us) - min(epoch_us(occurred_at) - boot_us) >= 1000000
),
told as materialized (
    select job_id, lease_token, event, position, seq, segment, occurred_at, boot_us, boot_id, started_at, locked_until,
        lease_ms, topic, worker, reason, idempotency_key
    from events
    cross join clock
    -- by position, so that the other columns are read of these events alone
    where position in (select position from events where job_id in (select job_id from candidates))
        and occurred_at <= clock.now_at
),
claims as (
    select *
    from told
    where event = 'job.leased'
    qualify row_number() over (partition by job_id, lease_token order by position) = 1
),
closed as (
    select told.*, claims.lease_token as closed_token
    from told
    inner join claims on claims.job_id = told.job_id
        and (claims.lease_token = told.lease_token
            or (told.lease_token is null and told.event = 'job.cancelled' and claims.position < told.position))
    where told.event in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed', 'job.released',
                         'job.lease_expired', 'job.cancelled')
    qualify row_number() over (partition by told.job_id, claims.lease_token order by told.position) = 1
),
moved as (
    select
        job_id,
        lease_token,
        max(locked_until) filter (where event = 'job.extended') as locked_until,
        count(*) filter (where event = 'job.extended') as extensions,
        min(started_at) as started_at,
        min(occurred_at) filter (where event = 'job.settle_refused') as refused_at,
        list(seq order by position) filter (where event = 'job.settle_refused') as refused_seqs
    from told
    where event in ('job.extended', 'job.settle_refused')
    group by job_id, lease_token
),
followed as (
    select
        job_id,
        lease_token,
        lead(worker) over (partition by job_id order by position) as next_worker,
        lead(occurred_at) over (partition by job_id order by position) as next_leased_at,
        lead(seq) over (partition by job_id order by position) as next_seq
    from claims
),
jobs_of as (
    select
        job_id,
        any_value(idempotency_key) filter (where event = 'job.enqueued') as idempotency_key,
        count(*) filter (where event = 'job.lease_expired' and reason is distinct from 'reboot') as kills,
        max(lease_token) filter (where event = 'job.lease_expired') as killed_token,
        arg_max(
            case
                when event = 'job.leased' then 'leased'
                when event = 'job.done' then 'done'
                when event = 'job.dead' then 'dead'
                when event in ('job.cancelled', 'job.discarded') then 'cancelled'
                else 'pending'
            end, position
        ) filter (where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired',
            'job.released', 'job.requeued', 'job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded'))
            as job_status
    from told
    group by job_id
),
gone as (
    select worker, max(position) as position
    from events
    cross join clock
    where event = 'worker.stopped' and occurred_at <= clock.now_at
    group by worker
),
-- topics with a lease that is open or was taken from its holder while its handler ran
begun as (
    select distinct claims.topic
    from claims
    left join closed on closed.job_id = claims.job_id and closed.closed_token = claims.lease_token
    left join moved on moved.job_id = claims.job_id and moved.lease_token = claims.lease_token
    left join beats on beats.job_id = claims.job_id and beats.lease_token = claims.lease_token
    where (closed.event is null or closed.event = 'job.lease_expired')
        and coalesce(moved.started_at, beats.started_at) is not null
),
-- the times of runs that ended, by which a run that has not is measured
runs as (
    select topic, quantile_cont(duration_ms, 0.99) / 1000.0 as p99_s, count(*) as n
    from events
    where event in ('job.done', 'job.retry_scheduled', 'job.dead') and duration_ms is not null
        and topic in (select topic from begun)
    group by topic
),
known as (
    select
        claims.job_id,
        claims.lease_token,
        claims.topic,
        claims.worker,
        claims.occurred_at as leased_at,
        claims.seq as leased_seq,
        claims.segment,
        claims.lease_ms,
        coalesce(moved.locked_until, claims.locked_until) as locked_until,
        coalesce(moved.extensions, 0) as extensions,
        coalesce(closed.started_at, moved.started_at, beats.started_at) as started_at,
        closed.occurred_at as ended_at,
        closed.seq as ended_seq,
        closed.event as ended_by,
        closed.reason,
        moved.refused_at,
        coalesce(moved.refused_seqs, []) as refused_seqs,
        followed.next_worker,
        followed.next_leased_at,
        followed.next_seq,
        gone.position > claims.position as worker_stopped,
        $beating and clock.now_at >= clock.last_at and beats.job_id is null
            and claims.occurred_at < coalesce(alive.beat_at, clock.now_at) as not_in_heartbeat,
        beats.job_id is not null as in_heartbeat,
        coalesce(
            closed.boot_id = claims.boot_id
                and abs(epoch_us(closed.occurred_at) - closed.boot_us - epoch_us(claims.occurred_at) + claims.boot_us)
                    >= 1000000, false
        ) or coalesce(closed.started_at < claims.occurred_at - interval 1 second, false) as skewed,
        (epoch_us(closed.occurred_at) - closed.boot_us - epoch_us(claims.occurred_at) + claims.boot_us)
            / 1000000.0 as clock_moved_s,
        jobs_of.idempotency_key,
        jobs_of.job_status,
        jobs_of.kills,
        jobs_of.killed_token,
        runs.p99_s as run_p99_s,
        runs.n as runs,
        clock.now_at
    from claims
    cross join clock
    inner join jobs_of on jobs_of.job_id = claims.job_id
    inner join followed on followed.job_id = claims.job_id and followed.lease_token = claims.lease_token
    left join closed on closed.job_id = claims.job_id and closed.closed_token = claims.lease_token
    left join moved on moved.job_id = claims.job_id and moved.lease_token = claims.lease_token
    left join beats on beats.job_id = claims.job_id and beats.lease_token = claims.lease_token
    left join alive on alive.worker = claims.worker
    left join gone on gone.worker = claims.worker
    left join runs on runs.topic = claims.topic
),
judged as (
    select
        *,
        case
            when ended_by = 'job.lease_expired' and refused_at is not null then 'refused'
            when ended_by = 'job.lease_expired' and reason = 'reboot' then 'reboot'
            when ended_by = 'job.lease_expired' and reason = 'worker_dead' then 'worker died'
            when ended_by = 'job.lease_expired' then 'expired'
            when ended_at is null and locked_until < now_at then 'overdue'
            when ended_by in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed')
                and ended_at > locked_until then 'late'
        end as how,
        case
            when ended_at is null and (worker_stopped or not_in_heartbeat) then 'orphan'
            when ended_at is null and locked_until < now_at then 'expired'
            when ended_at is null and started_at is not null
                and epoch_us(now_at) - epoch_us(started_at) > 1000 * lease_ms
                and (epoch_us(now_at) - epoch_us(started_at)) / 1000000.0 > coalesce(10 * run_p99_s, 0) then 'hung'
            when ended_at is null and started_at is null and (in_heartbeat or extensions > 0) then 'waiting in memory'
            when ended_at is null then 'held'
            when ended_by = 'job.lease_expired' and coalesce(reason, 'expired') = 'expired'
                and started_at is not null then 'hung'
            when ended_by = 'job.lease_expired' and coalesce(reason, 'expired') = 'expired'
                and extensions > 0 then 'waiting in memory'
            when ended_by = 'job.lease_expired' then 'expired'
            when ended_by in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed')
                and ended_at > locked_until then 'late'
        end as state
    from known
),
stated as (
    select *, state as status from judged where state is not null
    union all
    select *, 'clock-skewed' as status from judged where skewed
    union all
    select *, 'poison' as status from judged where kills >= 2 and lease_token = killed_token
)
select
    job_id,
    idempotency_key,
    lease_token,
    topic,
    worker,
    status,
    how,
    leased_at,
    locked_until,
    started_at,
    ended_at,
    refused_at,
    next_worker,
    next_leased_at,
    job_status,
    kills,
    run_p99_s,
    runs,
    clock_moved_s,
    now_at,
    segment,
    list_filter([leased_seq, ended_seq] || refused_seqs, lambda number: number is not null) as evidence
from stated
order by leased_at, job_id, lease_token, status
