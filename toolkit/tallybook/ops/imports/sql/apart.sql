-- the rows that are in no job, with the reason; `row` counts the rows of all files from 0
create or replace table apart (row bigint, reason varchar)
