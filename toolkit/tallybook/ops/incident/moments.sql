-- what stood at an instant of the span: $at is the last microsecond of the grain before $until_grain

-- name: queue
-- one row a topic: its jobs by status
select
    topic,
    cast(sum(pending) as bigint) as pending,
    cast(sum(leased) as bigint) as leased,
    cast(sum(done) as bigint) as done,
    cast(sum(dead) as bigint) as dead,
    cast(sum(cancelled) as bigint) as cancelled
from incident_queue
where grain < $until_grain
group by topic
order by topic;

-- name: depth
-- one row a grain of the span: jobs pending, leased and dead at its end
select
    cast(every.grain as integer) as grain,
    cast(coalesce(sum(queue.pending) over upto, 0) as bigint) as pending,
    cast(coalesce(sum(queue.leased) over upto, 0) as bigint) as leased,
    cast(coalesce(sum(queue.dead) over upto, 0) as bigint) as dead
from (select unnest(range(-1, $count)) as grain) as every
left join (
    select grain, sum(pending) as pending, sum(leased) as leased, sum(dead) as dead
    from incident_queue
    group by grain
) as queue on queue.grain = every.grain
window upto as (order by every.grain rows between unbounded preceding and current row)
order by every.grain;

-- name: leases
-- one row a worker with open leases: how many, and how long it had held the oldest
select
    names.name as worker,
    count(*) as leases,
    max($at - leases.leased_us) / 1000000.0 as oldest_s
from incident_leases as leases
inner join incident_names as names on names.id = leases.worker
where leases.leased_us <= $at and (leases.ended_us is null or leases.ended_us > $at)
group by names.name
order by oldest_s desc, names.name;

-- name: cache_keys
-- one row: the keys that were cached
select count(*) as keys
from incident_cache
where put and at_us <= $at and (held_until_us is null or held_until_us > $at);

-- name: cache_newest
-- one row a key that was cached, the last written first: at most $limit
select position
from incident_cache
where put and at_us <= $at and (held_until_us is null or held_until_us > $at)
order by at_us desc, position desc
limit $limit;

-- name: entries
-- one row an entry that was written at one of $positions
select key, cast(version as varchar) as version, cast(value as varchar) as value, occurred_at as updated_at, job_id
from events
where position in (select unnest($positions::bigint[]))
order by position desc;
