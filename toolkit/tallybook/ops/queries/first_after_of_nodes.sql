-- one row a node with events after $as_of: the position of the first of them
select node_id as cut_node, min(position) as cut_at
from events
where occurred_at > $as_of::timestamptz
group by node_id
