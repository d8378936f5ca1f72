-- one row a key that is cached at $as_of, or at the end of the log
select
    key,
    coalesce(try_cast(version as bigint), 1) as version,
    coalesce(cast(value as varchar), 'null') as value,
    etag,
    origin,
    pending,
    ttl_s,
    synced_at,
    job_id,
    occurred_at as updated_at,
    writer,
    seq
from cache_history
where $as_of::timestamptz is null or occurred_at <= $as_of::timestamptz
qualify row_number() over (partition by key order by position desc) = 1 and change = 'put'
order by key
