-- rows of an id that an earlier row had
insert into apart
select rowid, 'id: repeated: ' || id
from rows
where kept and id is not null and rowid not in (select row from apart)
qualify row_number() over (partition by id order by rowid) > 1
