-- one row a segment that is read from the archive: its rows, and how many different seqs they have
create table archived (
    segment varchar, first_seq bigint, last_seq bigint, first_at timestamptz, last_at timestamptz,
    events bigint, numbers bigint
)
