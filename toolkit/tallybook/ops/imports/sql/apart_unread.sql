-- rows with a cell that cannot be typed
insert into apart
select rowid, bad
from rows
where kept and bad is not null
