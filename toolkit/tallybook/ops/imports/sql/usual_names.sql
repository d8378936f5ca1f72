-- one row: the lists of names that the objects of some lines of text have, where no name stands twice
select coalesce(list(distinct names), []::varchar[][][])
from (
    select json_keys(line, $objects) as names
    from (select unnest($lines::varchar[]) as line)
    where json_valid(line)
)
where named_twice(names) is null
