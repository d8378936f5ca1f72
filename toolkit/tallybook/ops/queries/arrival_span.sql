-- one row: when the first and the last job were enqueued
select min(created_at) as first_at, max(created_at) as last_at
from jobs
