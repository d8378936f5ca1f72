-- one row a row that a later state of its job replaces: an end beats a start, a start beats a submit
create or replace table superseded as
select rowid as row
from rows
where kept and id is not null and rowid not in (select row from apart)
qualify row_number() over (
    partition by id
    order by end_us is not null desc, start_us is not null desc,
        coalesce(end_us, start_us, submit_us) desc, rowid desc
) > 1
