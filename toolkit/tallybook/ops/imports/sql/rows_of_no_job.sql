-- one row: how many rows are in no job
select
    (select count(*) from apart)
    + (select count(*) from superseded)
    + (select count(*) from rows where not kept) as left_over
