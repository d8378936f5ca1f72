-- the types of the columns of `lines` that repeat in every row of a segment, and the table of the files to read
create type segment_name as enum (select segment as name from openings union select '' order by name);

create type writer_name as enum (select writer as name from openings union select '' order by name);

create type boot_name as enum (
    select boot_id as name from openings where boot_id is not null union select '' order by name
);

create type node_name as enum (
    select node_id as name from openings where node_id is not null union select '' order by name
);

create table sources (
    file varchar, segment segment_name, writer writer_name, boot_id boot_name, node_id node_name, base bigint
);
