-- one row a key that is cached at $as_of, or at the end of the log
with latest as (
    select key, max(position) as position
    from events
    where event in ('cache.put', 'cache.invalidated') and key is not null
        and ($as_of::timestamptz is null or occurred_at <= $as_of::timestamptz)
    group by key
)
select
    events.key,
    coalesce(try_cast(events.version as bigint), 1) as version,
    coalesce(cast(events.value as varchar), 'null') as value,
    events.etag,
    coalesce(events.origin, 'local') as origin,
    coalesce(events.pending, false) as pending,
    events.ttl_s,
    events.synced_at,
    events.job_id,
    events.occurred_at as updated_at,
    events.writer,
    events.seq
from events
inner join latest on latest.position = events.position
where events.event = 'cache.put'
order by events.key
