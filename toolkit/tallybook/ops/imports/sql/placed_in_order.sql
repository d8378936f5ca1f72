-- one row a step of a job, of rows that are in order of time: `place` is the number of the row
create or replace view placed as
select *, seq as place from stepped
