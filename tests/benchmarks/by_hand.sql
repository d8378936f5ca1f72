-- name: throughput
-- arrivals, starts and completions a minute
select minute, sum(arrivals), sum(starts), sum(completions)
from (
    select
        date_trunc('minute', occurred_at) as minute,
        count(*) filter (where event = 'job.enqueued') as arrivals,
        0 as starts,
        count(*) filter (where event in ('job.done', 'job.dead')) as completions
    from events
    where event in ('job.enqueued', 'job.done', 'job.dead')
    group by minute
    union all
    select date_trunc('minute', started_at) as minute, 0, count(*), 0
    from events
    where event in ('job.done', 'job.dead', 'job.retry_scheduled')
    group by minute
)
group by minute
order by minute

-- name: latency
-- wait, run and total by topic, each job from its enqueue to its end
with ended as (
    select
        job_id,
        min(started_at) as started_at,
        max(occurred_at) filter (where event in ('job.done', 'job.dead')) as ended_at,
        max(duration_ms) filter (where event in ('job.done', 'job.dead')) as run
    from events
    where event in ('job.done', 'job.dead', 'job.retry_scheduled')
    group by job_id
),
timed as (
    select
        enqueued.topic,
        epoch_us(ended.started_at) - epoch_us(coalesce(enqueued.next_attempt_at, enqueued.occurred_at)) as wait,
        ended.run,
        epoch_us(ended.ended_at) - epoch_us(coalesce(enqueued.next_attempt_at, enqueued.occurred_at)) as total
    from events as enqueued
    left join ended on ended.job_id = enqueued.job_id
    where enqueued.event = 'job.enqueued'
)
select
    topic,
    count(total) as n,
    count(*) - count(total) as open,
    quantile_cont(wait, [0.5, 0.9, 0.95, 0.99]), avg(wait), max(wait),
    quantile_cont(run, [0.5, 0.9, 0.95, 0.99]), avg(run), max(run),
    quantile_cont(total, [0.5, 0.9, 0.95, 0.99]), avg(total), max(total)
from timed
group by topic
order by topic

-- name: depth
-- jobs pending and leased at the end of each minute, by the status before each change
with changes as (
    select
        job_id,
        position,
        occurred_at,
        case
            when event = 'job.leased' then 2
            when event in ('job.done', 'job.dead', 'job.cancelled', 'job.discarded', 'job.pruned') then 0
            else 1
        end as status
    from events
    where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired', 'job.released',
                    'job.requeued', 'job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded',
                    'job.pruned')
),
steps as (
    select occurred_at, status, lag(status, 1, 0) over (partition by job_id order by position) as before
    from changes
),
moved as (
    select
        date_trunc('minute', occurred_at) as minute,
        count(*) filter (where status = 1) - count(*) filter (where before = 1) as pending,
        count(*) filter (where status = 2) - count(*) filter (where before = 2) as leased
    from steps
    group by minute
)
select minute, sum(pending) over (order by minute), sum(leased) over (order by minute)
from moved
order by minute

-- name: lease_states
-- leases that nobody ended, that were taken from their holder or that were settled too late, with what came after
with ends as (
    select job_id, lease_token, event, occurred_at
    from events
    where event in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed', 'job.released',
                    'job.lease_expired', 'job.cancelled')
),
stuck as (
    select claims.job_id, claims.lease_token, claims.worker, claims.locked_until, ends.event, ends.occurred_at
    from events as claims
    left join ends on ends.job_id = claims.job_id and ends.lease_token = claims.lease_token
    where claims.event = 'job.leased'
        and (ends.event is null or ends.event = 'job.lease_expired' or ends.occurred_at > claims.locked_until)
)
select
    stuck.*,
    list(told.seq order by told.position) as evidence,
    min(told.occurred_at) filter (where told.event = 'job.settle_refused') as refused_at
from stuck
left join events as told on told.job_id = stuck.job_id
group by all

-- name: double_runs
-- pairs of runs of a job that overlapped
with runs as (
    select
        job_id,
        lease_token,
        any_value(worker) as worker,
        min(started_at) as started_at,
        max(started_at + to_microseconds(cast(duration_ms * 1000 as bigint))) as until_at
    from events
    where event in ('job.done', 'job.retry_scheduled', 'job.dead', 'job.settle_refused') and started_at is not null
        and job_id in (select job_id from events where event = 'job.leased' and lease_token > 1)
    group by job_id, lease_token
)
select one.job_id, one.worker, two.worker,
    epoch_us(least(one.until_at, two.until_at)) - epoch_us(two.started_at) as overlap_us
from runs as one
inner join runs as two on two.job_id = one.job_id and two.lease_token > one.lease_token
    and two.started_at < one.until_at and one.started_at < two.until_at

-- name: cache_as_of
-- the latest entry of each key
select key, version, value, etag, origin, pending, ttl_s, synced_at, job_id, occurred_at, writer, seq
from events
where event in ('cache.put', 'cache.invalidated')
qualify row_number() over (partition by key order by position desc) = 1
order by key
