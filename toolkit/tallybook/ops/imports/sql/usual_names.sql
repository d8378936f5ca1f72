-- a variable: the lists of names that the objects of some lines of text have, where none stands twice; a
-- row that has the same names needs no further look
set variable usual_names = (
    select coalesce(list(distinct names), []::varchar[][][])
    from (
        select json_keys(line, $objects) as names
        from (select unnest($lines::varchar[]) as line)
        where json_valid(line)
    )
    where named_twice(names) is null
)
