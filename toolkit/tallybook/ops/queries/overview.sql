-- one row: what the log holds
with logged as (
    select
        count(*) as events,
        count(distinct worker) filter (where event = 'worker.started' or event = 'job.leased') as workers,
        count(distinct writer) as writers,
        min(occurred_at) as first_at,
        max(occurred_at) as last_at
    from events
),
queued as (
    select
        count(*) as jobs,
        count(*) filter (where status = 'pending') as pending,
        count(*) filter (where status = 'leased') as leased,
        count(*) filter (where status = 'done') as done,
        count(*) filter (where status = 'dead') as dead,
        count(*) filter (where status = 'cancelled') as cancelled,
        coalesce(sum(retries), 0) as retries,
        coalesce(sum(rescues), 0) as rescues
    from jobs
),
cached as (
    select count(*) as cache_keys
    from cache_history
    where newest = 1 and change = 'put'
)
select
    events,
    jobs,
    pending,
    leased,
    done,
    dead,
    cancelled,
    cast(retries as bigint) as retries,
    cast(rescues as bigint) as rescues,
    cache_keys,
    workers,
    writers,
    first_at,
    last_at,
    (epoch_us(last_at) - epoch_us(first_at)) / 1000000.0 as span_s
from logged
cross join queued
cross join cached
