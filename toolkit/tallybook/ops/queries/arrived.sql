-- one row: how many jobs arrived and how many leases were held between $since and $until, where given
select
    (
        select count(*)
        from events
        where event = 'job.enqueued'
            and ($since::timestamptz is null or occurred_at >= $since::timestamptz)
            and ($until::timestamptz is null or occurred_at < $until::timestamptz)
    ) as jobs,
    (
        select count(*)
        from leases
        where ($since::timestamptz is null or coalesce(ended_at, $since::timestamptz) >= $since::timestamptz)
            and ($until::timestamptz is null or leased_at < $until::timestamptz)
    ) as leases
