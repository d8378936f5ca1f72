-- the small tables that a brush reads instead of the log, made once for a span of it; a grain is a step of time,
-- numbered from 0 at $since; what belongs to no grain of the span has null there

-- name: jobs
-- one row a job: where it was enqueued, when it was due, how large its payload is
create temp table incident_jobs as
select
    job_id,
    any_value(position) as position,
    any_value(epoch_us(case
        when reason is distinct from 'submit_unknown' then coalesce(next_attempt_at, occurred_at)
    end)) as due_us,
    any_value(octet_length(encode(cast(payload as varchar)))) as payload_bytes
from events
where event = 'job.enqueued'
group by job_id;

-- name: held
-- one row a lease with the names of what it has to do with, as text
create temp table incident_held as
select
    leases.job_id,
    leases.lease_token,
    jobs.position as job_position,
    coalesce(leases.topic, '(none)') as topic,
    coalesce(leases.worker, '(none)') as worker,
    case
        when leases.how in ('expired', 'worker died', 'reboot') then 'lease ' || leases.how
        when leases.how in ('retry', 'dead') then coalesce(leases.error_type, '(unnamed)')
        else '(none)'
    end as error,
    coalesce(leases.endpoint, '(none)') as endpoint,
    case
        when jobs.payload_bytes is null then '(not in the log)'
        when jobs.payload_bytes < 256 then 'under 256 B'
        when jobs.payload_bytes < 1024 then '256 B to 1 KiB'
        when jobs.payload_bytes < 4096 then '1 to 4 KiB'
        when jobs.payload_bytes < 16384 then '4 to 16 KiB'
        when jobs.payload_bytes < 65536 then '16 to 64 KiB'
        when jobs.payload_bytes < 262144 then '64 to 256 KiB'
        else '256 KiB and more'
    end as size,
    case
        when leases.attempt_count >= 3 then 'fourth and later'
        when leases.attempt_count = 2 then 'third'
        when leases.attempt_count = 1 then 'second'
        else 'first'
    end as attempt,
    leases.how,
    leases.how in ('retry', 'dead', 'expired', 'worker died', 'reboot') as failed,
    leases.refused > 0 as refused,
    epoch_us(leases.leased_at) as leased_us,
    epoch_us(leases.ended_at) as ended_us,
    epoch_us(leases.started_at) as started_us,
    cast(round(leases.duration_ms * 1000) as bigint) as run_us,
    jobs.due_us
from leases
left join incident_jobs as jobs on jobs.job_id = leases.job_id
where epoch_us(leases.leased_at) < $until and (leases.ended_at is null or epoch_us(leases.ended_at) >= $since);

-- name: names
-- one row a value of a dimension
create temp table incident_names as
with told as (
    select distinct 'topic' as dimension, topic as name from incident_held
    union all select distinct 'worker', worker from incident_held
    union all select distinct 'error', error from incident_held
    union all select distinct 'endpoint', endpoint from incident_held
    union all select distinct 'payload size', size from incident_held
    union all select distinct 'attempt', attempt from incident_held
)
select cast(row_number() over (order by dimension, name) as integer) as id, dimension, name
from told;

-- name: leases
-- one row a lease, narrow: numbers of its names, microseconds; busy_us is how long it kept its worker
create temp table incident_leases as
select
    held.job_position,
    held.lease_token,
    case when coalesce(held.ended_us, $until - 1) < $until
        then cast((coalesce(held.ended_us, $until - 1) - $since) // $grain as integer) end as grain,
    topics.id as topic,
    workers.id as worker,
    errors.id as error,
    endpoints.id as endpoint,
    sizes.id as size,
    attempts.id as attempt,
    held.how,
    held.failed,
    held.refused,
    held.leased_us,
    held.started_us,
    held.ended_us,
    held.run_us,
    coalesce(held.run_us, coalesce(held.ended_us, $until) - held.leased_us) as busy_us,
    case when held.how in ('done', 'dead') then held.ended_us - held.due_us end as total_us,
    case when row_number() over (partition by held.job_position order by held.lease_token) = 1
        then held.started_us - held.due_us end as wait_us
from incident_held as held
inner join incident_names as topics on topics.dimension = 'topic' and topics.name = held.topic
inner join incident_names as workers on workers.dimension = 'worker' and workers.name = held.worker
inner join incident_names as errors on errors.dimension = 'error' and errors.name = held.error
inner join incident_names as endpoints on endpoints.dimension = 'endpoint' and endpoints.name = held.endpoint
inner join incident_names as sizes on sizes.dimension = 'payload size' and sizes.name = held.size
inner join incident_names as attempts on attempts.dimension = 'attempt' and attempts.name = held.attempt;

-- name: taken
-- one row a lease that was taken from its holder
create temp table incident_taken as
select worker, how, leased_us, ended_us
from incident_held
where how in ('expired', 'worker died', 'reboot');

-- name: cells
-- one row a grain and name: the leases that ended in it, an open one in the last
create temp table incident_cells as
select
    grain,
    id,
    count(*) as n,
    count(*) filter (where failed) as failed,
    sum(cast(busy_us as double)) as busy_us,
    sum(cast(busy_us as double) * busy_us) as busy_sq
from (
    select grain, failed, busy_us, unnest([topic, worker, error, endpoint, size, attempt]) as id
    from incident_leases
    where grain is not null
)
group by grain, id;

-- name: bands
-- one row a grain, measure and band of time, 64 bands to a doubling: how many
create temp table incident_bands as
select grain, measure, band, count(*) as n
from (
    select grain, measure, cast(floor(log2(greatest(us, 1)) * 64) as integer) as band
    from (
        select grain, run_us, wait_us, total_us from incident_leases where grain is not null
    )
    unpivot (us for measure in (run_us, wait_us, total_us))
)
group by grain, measure, band;

-- name: flows
-- one row a grain in which something moved: jobs enqueued, runs started, jobs completed
create temp table incident_flows as
select grain, sum(arrivals) as arrivals, sum(starts) as starts, sum(completions) as completions
from (
    select
        (epoch_us(occurred_at) - $since) // $grain as grain,
        count(*) filter (where event = 'job.enqueued') as arrivals,
        0 as starts,
        count(*) filter (where event <> 'job.enqueued') as completions
    from events
    where event in ('job.enqueued', 'job.done', 'job.dead')
        and epoch_us(occurred_at) >= $since and epoch_us(occurred_at) < $until
    group by 1
    union all
    select (started_us - $since) // $grain, 0, count(*), 0
    from incident_leases
    where started_us >= $since and started_us < $until
    group by 1
)
group by grain;

-- name: lanes
-- one row a grain and worker: how long it held leases in it
create temp table incident_lanes as
with spread as (
    select
        worker,
        greatest(leased_us, $since) as from_us,
        least(coalesce(ended_us, $until), $until) as over_us,
        unnest(range(
            (greatest(leased_us, $since) - $since) // $grain,
            (least(coalesce(ended_us, $until), $until) - $since - 1) // $grain + 1
        )) as grain
    from incident_leases
)
select
    cast(grain as integer) as grain,
    worker,
    sum(least(over_us, $since + (grain + 1) * $grain) - greatest(from_us, $since + grain * $grain)) as held_us
from spread
group by grain, worker;

-- name: queue
-- one row a grain and topic whose jobs changed status in it; what was before the span is in grain -1
create temp table incident_queue as
with changes as (
    select
        job_id,
        position,
        occurred_at,
        case
            when event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired',
                           'job.released', 'job.requeued') then 1
            when event in ('job.leased', 'job.extended') then 2
            when event = 'job.done' then 3
            when event = 'job.dead' then 4
            when event in ('job.cancelled', 'job.discarded') then 5
            else 0
        end as status
    from events
    where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired', 'job.released',
                    'job.requeued', 'job.leased', 'job.extended', 'job.done', 'job.dead', 'job.cancelled',
                    'job.discarded', 'job.pruned')
        and epoch_us(occurred_at) < $until
),
steps as (
    select
        job_id,
        greatest((epoch_us(occurred_at) - $since) // $grain, -1) as grain,
        status,
        lag(status, 1, 0) over (partition by job_id order by position) as was
    from changes
),
topics as (
    select distinct job_id, topic
    from events
    where event = 'job.enqueued'
)
select
    cast(steps.grain as integer) as grain,
    topics.topic,
    count(*) filter (where status = 1) - count(*) filter (where was = 1) as pending,
    count(*) filter (where status = 2) - count(*) filter (where was = 2) as leased,
    count(*) filter (where status = 3) - count(*) filter (where was = 3) as done,
    count(*) filter (where status = 4) - count(*) filter (where was = 4) as dead,
    count(*) filter (where status = 5) - count(*) filter (where was = 5) as cancelled
from steps
inner join topics on topics.job_id = steps.job_id
where steps.status <> steps.was
group by steps.grain, topics.topic;

-- name: cache
-- one row a change of a cache key: when, and until when it held
create temp table incident_cache as
select
    position,
    change = 'put' as put,
    epoch_us(occurred_at) as at_us,
    epoch_us(held_until) as held_until_us
from cache_history
where epoch_us(occurred_at) < $until;
