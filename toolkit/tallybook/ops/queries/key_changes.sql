-- one row a change of the key $key, the first first; of all keys where it is '', the last first, at most $limit
select key, change, version, value, origin, job_id, reason, occurred_at, held_until, writer, seq
from cache_history
where $key = '' or key = $key
order by case when $key = '' then -position else position end
limit $limit
