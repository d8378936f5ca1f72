-- one row an event before the cut
select *
from main.events
where position < getvariable('cut_position')
