-- one row: the position of the first event after $as_of, or one behind the last
select coalesce(
    min(position) filter (where occurred_at > $as_of::timestamptz),
    max(position) + 1,
    0
) as position
from events
