-- no job: where rows are not in order of time, none is plain
create or replace table lives (
    id varchar, first_place bigint, steps bigint, submits bigint, starts bigint, ends bigint,
    cancelled bigint, start_us bigint, start_worker varchar
)
