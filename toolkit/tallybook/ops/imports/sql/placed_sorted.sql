-- one row a step of a job, in order of time: `place` orders them
create or replace table placed as
select *, row_number() over (order by at_us, seq) as place from stepped
