-- one row a node that has events: how many, its jobs, its first and its last instant
select
    node_id,
    count(*) as events,
    count(*) filter (where event = 'job.enqueued') as jobs,
    min(occurred_at) as first_at,
    max(occurred_at) as last_at
from events
group by node_id
order by node_id
