-- one row a kind of reason: its rows, the texts of some, and how many rows have no fault at all
with faults as (
    select regexp_extract(bad, '^[a-z ]+(: [a-z ]+)?') as reason, bad
    from rows
    where kept and bad is not null
)
select
    reason,
    count(*) as rows_bad,
    list(bad)[1:$examples] as examples,
    (select count(*) from rows where kept and bad is null) as fitting
from faults
group by reason
order by rows_bad desc
