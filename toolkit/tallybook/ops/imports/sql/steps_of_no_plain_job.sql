-- one row: how many steps are of jobs that are not plain
select (select count(*) from placed) - (select coalesce(sum(steps), 0) from lives)
