-- one row: the first and the last instant of the log
select min(occurred_at) as first_at, max(occurred_at) as last_at
from events
