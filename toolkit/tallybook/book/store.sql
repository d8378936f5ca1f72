-- name: schema
-- how far the log is applied; one row
create table position (
  one integer primary key check (one = 1),
  writer text not null,
  seq integer not null,
  hash blob not null,
  segment text not null,
  offset integer not null,
  ordinal integer not null,
  boot_id text not null
) strict;

-- name: position
-- how far the log is applied
select writer, seq, hash, segment, offset, ordinal, boot_id from position

-- name: set_position
-- the log is applied up to here
insert or replace into position (one, writer, seq, hash, segment, offset, ordinal, boot_id)
values (1, ?, ?, ?, ?, ?, ?, ?)
