-- one row a change of a cache key; it held from `occurred_at` until `held_until` (null: it still holds)
select
    node_id,
    key,
    case when event = 'cache.put' then 'put' else 'invalidated' end as change,
    version,
    value,
    base_version,
    etag,
    last_modified,
    coalesce(origin, 'local') as origin,
    coalesce(pending, false) as pending,
    ttl_s,
    depends_on,
    value_schema,
    synced_at,
    job_id,
    reason,
    position,
    writer,
    seq,
    occurred_at,
    lead(occurred_at) over (partition by case when getvariable('by_node') then node_id end, key order by position) as held_until,
    row_number() over (partition by case when getvariable('by_node') then node_id end, key order by position desc) as newest
from events
where event in ('cache.put', 'cache.invalidated') and key is not null
