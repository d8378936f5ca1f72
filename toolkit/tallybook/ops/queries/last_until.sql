-- one row: when the last event up to $position occurred
select arg_max(occurred_at, position) as occurred_at
from events
where position <= $position
