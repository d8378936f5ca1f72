-- one row a row of the files, typed; `bad` says why one cannot be read, `kept` whether the filter lets it in
create or replace table rows (
    id varchar,
    topic varchar,
    worker varchar,
    word varchar,
    correlation_id varchar,
    error varchar,
    attempt varchar,
    at_us bigint,
    start_us bigint,
    until_us bigint,
    bad varchar,
    kept boolean
)
