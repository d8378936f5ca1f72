-- one row: rows whose time is before that of the row above them
select count(*) as out_of_order
from (
    select at_us < lag(at_us) over () as is_before
    from rows
    where at_us is not null
)
where is_before
