-- one row: how many rows `lines` has, and a digest of what they say
select
    count(*) as rows_read,
    bit_xor(hash(position, occurred_at, event, job_id, payload, key, value, result, worker, lease_token)) as digest
from lines
