-- name: schema
-- one row a key
create table cache (
  key text primary key,
  value text not null,
  version integer not null,
  base_version integer,
  etag text,
  last_modified text,
  origin text not null,
  pending integer not null,
  ttl_s real,
  depends_on text not null,
  value_schema text,
  synced_at text,
  job_id text,
  updated_at text not null
) strict;

-- name: get
-- the entry of a key
select {columns} from cache where key = ?

-- name: put
-- an entry, new or changed
insert or replace into cache ({columns}) values ({marks})

-- name: drop
-- an invalidated entry goes
delete from cache where key = ?

-- name: select
-- entries by key
select {columns} from cache order by key limit ?

-- name: size
-- number of entries
select count(*) from cache
