-- one row an entry of $keys and value that it had before its last one
with puts as (
    select key, value, position, max(position) over (partition by key) as last_position
    from events
    where event = 'cache.put' and list_contains($keys, key)
)
select distinct key, cast(value as varchar) as value
from puts
where position < last_position
order by key, value
