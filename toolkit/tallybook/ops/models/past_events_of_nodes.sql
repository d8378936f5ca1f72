-- one row an event of a fleet before the cut of its node
with cuts as (
    select unnest(getvariable('cut_nodes'), recursive := true)
)
select events.*
from main.events as events
left join cuts on cuts.cut_node = events.node_id
where cuts.cut_at is null or events.position < cuts.cut_at
