-- one row a worker and count where the rolling metrics and the log differ
with told as (
    select
        worker,
        sum(done_count) as done,
        sum(retried_count) as retried,
        sum(dead_count) as dead,
        sum(refused_count) as refused
    from metrics
    where worker is not null
    group by worker
),
logged as (
    select
        worker,
        any_value(node_id) as node_id,
        count(*) filter (where event = 'job.done') as done,
        count(*) filter (where event = 'job.retry_scheduled') as retried,
        count(*) filter (where event = 'job.dead') as dead,
        count(*) filter (where event = 'job.settle_refused') as refused
    from events
    where worker is not null
    group by worker
),
-- of a fleet, metrics may lie beside some nodes only
told_of as (
    select distinct logged.node_id
    from logged
    inner join told on told.worker = logged.worker
),
both_sides as (
    select
        coalesce(logged.worker, told.worker) as worker,
        told.worker is not null as in_metrics,
        logged.worker is not null as in_log,
        [
            {'counted': 'done', 'in_log': coalesce(logged.done, 0), 'in_metrics': coalesce(told.done, 0)},
            {'counted': 'retried', 'in_log': coalesce(logged.retried, 0), 'in_metrics': coalesce(told.retried, 0)},
            {'counted': 'dead', 'in_log': coalesce(logged.dead, 0), 'in_metrics': coalesce(told.dead, 0)},
            {'counted': 'refused', 'in_log': coalesce(logged.refused, 0), 'in_metrics': coalesce(told.refused, 0)}
        ] as counts
    from logged
    full join told on told.worker = logged.worker
    where not getvariable('by_node')
        or told.worker is not null
        or logged.node_id in (select node_id from told_of)
),
compared as (
    select worker, unnest(counts, recursive := true)
    from both_sides
)
select
    worker,
    counted,
    cast(in_log as bigint) as in_log,
    cast(in_metrics as bigint) as in_metrics
from compared
where in_log <> in_metrics
    and exists (select 1 from metrics)
order by worker, counted
