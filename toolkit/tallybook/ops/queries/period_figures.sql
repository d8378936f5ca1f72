-- one row: what happened between $since and $until: jobs that arrived and ended, runs and how they failed, leases lost
select
    count(*) filter (where event = 'job.enqueued') as arrived,
    count(*) filter (where event = 'job.done') as done,
    count(*) filter (where event = 'job.dead') as dead,
    count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')) as runs,
    count(*) filter (where event in ('job.retry_scheduled', 'job.dead')) as failed_runs,
    count(*) filter (where event = 'job.lease_expired') as leases_lost,
    count(*) filter (where event = 'job.settle_refused') as results_refused,
    count(*) filter (where event = 'cache.put') as cache_writes
from events
where occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
