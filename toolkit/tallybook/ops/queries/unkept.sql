-- one row: how many events follow the newest checkpoint, and whether there is one
with kept as (
    select max(events.position) as position
    from marks
    inner join events on events.writer = marks.writer and events.seq = marks.seq
    where marks.source like 'checkpoints/%'
)
select
    count(*) filter (where events.position > coalesce(kept.position, -1)) as events,
    coalesce(bool_or(kept.position is not null), false) as has_checkpoint
from events
cross join kept
