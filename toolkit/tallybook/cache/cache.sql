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
  updated_at text not null,
  boot_us integer not null,
  boot_id text not null
) strict;
create table cache_dependencies (
  depends_on text not null,
  key text not null,
  primary key (depends_on, key)
) strict, without rowid;
create index cache_dependencies_of on cache_dependencies (key);

-- name: get
-- the entry of a key
select {columns} from cache where key = ?

-- name: put
-- an entry, new or changed
insert or replace into cache ({columns}) values ({marks})

-- name: drop
-- an invalidated entry goes
delete from cache where key = ?

-- name: depend
-- an entry depends on a key
insert or ignore into cache_dependencies (depends_on, key) values (?, ?)

-- name: undepend
-- what an entry depended on is of no matter any more
delete from cache_dependencies where key = ?

-- name: dependents
-- the entries that depend on a key
select key from cache_dependencies where depends_on = ? order by key

-- name: scan_from
-- entries by key, from a text on
select {columns} from cache where key >= ? order by key

-- name: size
-- number of entries
select count(*) from cache
