-- one row a segment of the log: how it begins
create table openings (
    segment varchar, writer varchar, ordinal bigint, first_at varchar, node_id varchar, host varchar,
    boot_id varchar, versions varchar, previous_writer varchar, previous_seq bigint
)
