-- one row a topic: its jobs by status and whether it is paused
with switched as (
    select topic, arg_max(event, position) as last_event
    from events
    where event in ('topic.paused', 'topic.resumed') and topic is not null
    group by topic
),
counted as (
    select
        topic,
        count(*) filter (where pruned_at is null) as jobs,
        count(*) filter (where status = 'pending' and pruned_at is null) as pending,
        count(*) filter (where status = 'leased' and pruned_at is null) as leased,
        count(*) filter (where status = 'done' and pruned_at is null) as done,
        count(*) filter (where status = 'dead' and pruned_at is null) as dead,
        count(*) filter (where status = 'cancelled' and pruned_at is null) as cancelled,
        count(*) filter (where pruned_at is not null) as pruned,
        min(created_at) as first_enqueued_at,
        max(created_at) as last_enqueued_at,
        min(created_at) filter (where status = 'pending' and pruned_at is null) as oldest_pending_at
    from jobs
    group by topic
)
select
    coalesce(counted.topic, switched.topic) as topic,
    case when switched.last_event = 'topic.paused' then 'paused' else 'active' end as status,
    coalesce(jobs, 0) as jobs,
    coalesce(pending, 0) as pending,
    coalesce(leased, 0) as leased,
    coalesce(done, 0) as done,
    coalesce(dead, 0) as dead,
    coalesce(cancelled, 0) as cancelled,
    coalesce(pruned, 0) as pruned,
    first_enqueued_at,
    last_enqueued_at,
    oldest_pending_at
from counted
full join switched on switched.topic = counted.topic
