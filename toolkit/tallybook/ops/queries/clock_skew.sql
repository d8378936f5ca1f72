-- one row a pair of nodes with a correlation id in common: enqueues of one against runs of the other
with runs as (
    select node_id, correlation_id, min(started_at) as began_at, max(occurred_at) as ended_at
    from events
    where correlation_id is not null and started_at is not null
        and event in ('job.done', 'job.dead', 'job.retry_scheduled')
    group by node_id, correlation_id
),
arrivals as (
    select node_id, correlation_id, min(occurred_at) as arrived_at
    from events
    where correlation_id is not null and event = 'job.enqueued'
    group by node_id, correlation_id
),
met as (
    select
        runs.node_id,
        arrivals.node_id as other_id,
        case
            when arrivals.arrived_at < runs.began_at
                then (epoch_us(arrivals.arrived_at) - epoch_us(runs.began_at)) / 1000000.0
            when arrivals.arrived_at > runs.ended_at
                then (epoch_us(arrivals.arrived_at) - epoch_us(runs.ended_at)) / 1000000.0
        end as outside_s
    from runs
    inner join arrivals on arrivals.correlation_id = runs.correlation_id and arrivals.node_id <> runs.node_id
),
paired as (
    select
        node_id,
        other_id,
        count(*) as shared,
        count(*) filter (where outside_s < 0) as before,
        count(*) filter (where outside_s > 0) as after,
        median(outside_s) as skew_s,
        min(outside_s) as least_s,
        max(outside_s) as most_s
    from met
    group by node_id, other_id
)
select *
from paired
qualify row_number() over (
    partition by least(node_id, other_id), greatest(node_id, other_id)
    order by abs(coalesce(skew_s, 0)), node_id
) = 1
order by node_id, other_id
