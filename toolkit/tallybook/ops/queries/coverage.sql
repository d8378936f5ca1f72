-- one row: what lies between $since and $until, where given: events, jobs that arrived, leases held, cache writes, first and last instant
with asked as (
    select event, occurred_at
    from events
    where ($since::timestamptz is null or occurred_at >= $since::timestamptz)
        and ($until::timestamptz is null or occurred_at < $until::timestamptz)
)
select
    count(*) as events,
    count(*) filter (where event = 'job.enqueued') as jobs,
    count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')) as runs,
    count(*) filter (where event = 'cache.put') as writes,
    (
        select count(*)
        from leases
        where ($since::timestamptz is null or coalesce(ended_at, $since::timestamptz) >= $since::timestamptz)
            and ($until::timestamptz is null or leased_at < $until::timestamptz)
    ) as leases,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at
from asked
