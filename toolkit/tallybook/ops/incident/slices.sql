-- what a brush asks: the grains from $first up to, not including, $last, over the small tables of tables.sql

-- name: flow
-- one row a grain of the span, empty ones too: jobs that arrived, started and were completed in it
select
    cast(every.grain as integer) as grain,
    cast(coalesce(arrivals, 0) as bigint) as arrivals,
    cast(coalesce(starts, 0) as bigint) as starts,
    cast(coalesce(completions, 0) as bigint) as completions
from (select unnest(range($count)) as grain) as every
left join incident_flows as flows on flows.grain = every.grain
order by every.grain;

-- name: summary
-- two rows, of the slice and of the rest: grains, leases that ended, failed among them, time that they took
select
    every.inside,
    count(distinct every.grain) as grains,
    cast(coalesce(sum(cells.n), 0) as bigint) as n,
    cast(coalesce(sum(cells.failed), 0) as bigint) as failed,
    coalesce(sum(cells.busy_us), 0) / 1000000.0 as busy_s
from (select grain, grain >= $first and grain < $last as inside from (select unnest(range($count)) as grain)) as every
left join (
    select cells.*
    from incident_cells as cells
    inner join incident_names as names on names.id = cells.id and names.dimension = 'topic'
) as cells on cells.grain = every.grain
group by every.inside
order by every.inside desc;

-- name: latency
-- one row a window of $width grains and measure with something measured: n, p50, p95 and p99 in seconds, each the
-- middle of a band that is 1.1 % wide
with counted as (
    select (grain - $first) // $width as place, measure, band, sum(n) as n
    from incident_bands
    where grain >= $first and grain < $last
    group by 1, 2, 3
),
summed as (
    select
        *,
        sum(n) over (partition by place, measure order by band) as upto,
        sum(n) over (partition by place, measure) as total
    from counted
)
select
    place,
    measure,
    cast(any_value(total) as bigint) as n,
    pow(2, (min(band) filter (where upto >= 0.5 * total) + 0.5) / 64) / 1000000.0 as p50,
    pow(2, (min(band) filter (where upto >= 0.95 * total) + 0.5) / 64) / 1000000.0 as p95,
    pow(2, (min(band) filter (where upto >= 0.99 * total) + 0.5) / 64) / 1000000.0 as p99
from summed
group by place, measure
order by place, measure;

-- name: heat
-- one row a window of $width grains and band of run time, three bands to a doubling: leases that ended
select
    (grain - $first) // $width as place,
    pow(2, floor(band * 3 / 64) / 3) / 1000000.0 as from_s,
    pow(2, (floor(band * 3 / 64) + 1) / 3) / 1000000.0 as to_s,
    cast(sum(n) as bigint) as n
from incident_bands
where measure = 'run_us' and grain >= $first and grain < $last
group by 1, 2, 3
order by 1, 2;

-- name: lanes
-- one row a window of $width grains and worker: seconds that it held leases
select (lanes.grain - $first) // $width as place, names.name as worker, sum(lanes.held_us) / 1000000.0 as held_s
from incident_lanes as lanes
inner join incident_names as names on names.id = lanes.worker
where lanes.grain >= $first and lanes.grain < $last
group by 1, 2
order by 1, 2;

-- name: taken
-- one row a lease that was taken from its holder and reaches into the slice, the longest first; at most $limit
select
    worker,
    how,
    greatest(leased_us, $since) as from_us,
    least(ended_us, $until) as until_us
from incident_taken
where leased_us < $until and ended_us >= $since
order by ended_us - leased_us desc, leased_us
limit $limit;

-- name: errors
-- one row a window of $width grains and error: leases that ended so
select (cells.grain - $first) // $width as place, names.name as error, cast(sum(cells.n) as bigint) as n
from incident_cells as cells
inner join incident_names as names on names.id = cells.id
where names.dimension = 'error' and names.name <> '(none)' and cells.grain >= $first and cells.grain < $last
group by 1, 2
order by 1, 2;

-- name: names
-- one row a value of a dimension that is in the slice, the most frequent first
select names.id, names.dimension, names.name, cast(sum(cells.n) as bigint) as n
from incident_cells as cells
inner join incident_names as names on names.id = cells.id
where cells.grain >= $first and cells.grain < $last
group by names.id, names.dimension, names.name
order by names.dimension, n desc, names.name;

-- name: worst
-- one row a lease that ended in the slice, of the value $id where it is not null: failed ones first, then those that
-- took longest; at most $limit
with chosen as (
    select *
    from incident_leases as leases
    where grain >= $first and grain < $last
        and ($id is null or $id in (topic, worker, error, endpoint, size, attempt))
    order by failed desc, busy_us desc, job_position, lease_token
    limit $limit
)
select
    chosen.job_position,
    chosen.lease_token,
    topics.name as topic,
    workers.name as worker,
    chosen.how,
    errors.name as error,
    endpoints.name as endpoint,
    sizes.name as payload_size,
    chosen.busy_us / 1000000.0 as took_s,
    chosen.total_us / 1000000.0 as total_s,
    chosen.ended_us
from chosen
inner join incident_names as topics on topics.id = chosen.topic
inner join incident_names as workers on workers.id = chosen.worker
inner join incident_names as errors on errors.id = chosen.error
inner join incident_names as endpoints on endpoints.id = chosen.endpoint
inner join incident_names as sizes on sizes.id = chosen.size
order by chosen.failed desc, chosen.busy_us desc, chosen.job_position, chosen.lease_token;

-- name: named
-- one row a job that was enqueued at one of $positions
select position as job_position, job_id, idempotency_key
from events
where position in (select unnest($positions::bigint[])) and event = 'job.enqueued';
