-- one row: how many rows a Parquet file has, and a digest of what they say
select
    count(*) as rows_read,
    bit_xor(hash(position, occurred_at, event, job_id, payload, key, value, result, worker, lease_token)) as digest
from read_parquet($file)
