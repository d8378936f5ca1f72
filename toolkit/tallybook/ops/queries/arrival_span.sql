-- one row: when the first and the last job were enqueued, and how many
select min(occurred_at) as first_at, max(occurred_at) as last_at, count(*) as jobs
from events
where event = 'job.enqueued'
