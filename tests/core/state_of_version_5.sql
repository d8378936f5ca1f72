-- the tables of state.db as version 5 made them
pragma application_id = 1413565529;
pragma user_version = 5;
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
-- one row a job; ordinal is its place in the history, so its age
create table jobs (
  ordinal integer primary key,
  job_id text not null unique,
  topic text not null,
  payload_digest text not null,
  idempotency_key text not null,
  priority integer not null,
  max_attempts integer not null,
  correlation_id text,
  enqueued_from text,
  resource text,
  ordering_key text,
  expires_after_ms integer,
  timeout_s real,
  created_at text not null,
  status text not null,
  attempt_count integer not null,
  rescue_count integer not null,
  next_attempt_at text,
  delay_ms integer,
  due_boot_us integer not null,
  due_at text not null,
  expires_at text,
  expire_boot_us integer not null,
  finished_boot text not null,
  finished_boot_us integer not null,
  last_error text,
  error_type text,
  locked_by text,
  locked_until text,
  lease_token integer not null,
  lease_ms integer,
  lease_boot_us integer,
  updated_at text not null,
  finished_at text,
  cancel_requested_at text,
  payload text not null,
  result text
) strict;
create table topics (
  topic text primary key,
  status text not null
) strict;
create table counts (
  topic text not null,
  status text not null,
  number integer not null,
  primary key (topic, status)
) strict, without rowid;
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
