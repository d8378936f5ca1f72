-- name: schema
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
  payload_bytes integer not null,
  line integer not null,
  waits_for text,
  payload text not null,
  result text
) strict;
create index jobs_by_key on jobs (topic, idempotency_key) where idempotency_key <> job_id;
create index jobs_expiring on jobs (expire_boot_us) where status = 'pending' and expire_boot_us > 0;
create index jobs_ready on jobs (topic, priority desc, ordinal)
  where status = 'pending' and waits_for is null and due_boot_us = 0 and due_at = '';
create index jobs_delayed on jobs (topic, priority desc, due_boot_us, ordinal)
  where status = 'pending' and waits_for is null and due_boot_us > 0;
create index jobs_dated on jobs (topic, priority desc, due_at, ordinal)
  where status = 'pending' and waits_for is null and due_at > '';
create index jobs_due on jobs (due_boot_us)
  where status = 'pending' and waits_for is null and due_boot_us > 0;
create index jobs_due_at on jobs (due_at)
  where status = 'pending' and waits_for is null and due_at > '';
create index jobs_waiting on jobs (ordinal)
  where status = 'pending' and (waits_for is not null or due_boot_us > 0 or due_at > '');
create index jobs_in_line on jobs (topic, ordering_key, ordinal) where line > 0;
create index jobs_at_front on jobs (topic, ordering_key) where line = 2;
create index jobs_standing on jobs (resource)
  where status = 'pending' and waits_for is null and resource is not null;
create index jobs_of_resource
  on jobs (resource, topic, due_boot_us, due_at, priority desc, ordinal)
  where waits_for = 'resource';
create index jobs_leased on jobs (lease_boot_us) where status = 'leased';
create index jobs_dead on jobs (ordinal) where status = 'dead';
create index jobs_cancelled on jobs (ordinal) where status = 'cancelled';
create index jobs_to_cancel on jobs (locked_by)
  where status = 'leased' and cancel_requested_at is not null;
create table topics (
  topic text primary key,
  status text not null
) strict;
create table locks (
  resource text primary key,
  topic text not null,
  job_id text not null,
  worker text not null,
  lease_token integer not null,
  acquired_at text not null,
  acquired_boot text not null,
  acquired_boot_us integer not null
) strict;
create table buckets (
  topic text primary key,
  full_us integer not null
) strict;
create table counts (
  topic text not null,
  status text not null,
  number integer not null,
  bytes integer not null,
  primary key (topic, status)
) strict, without rowid;

-- name: get
-- the job of an id
select {columns} from jobs where job_id = ?

-- name: get_many
-- the jobs of ids; ids: [id, …]
select {columns} from jobs where job_id in (select value from json_each(?))

-- name: by_keys
-- the jobs that hold idempotency keys, or held them last, without result, of the payload one letter;
-- keys: [[topic, key], …]. a job without a key of its own has its id as the key
with asked as (
  select json_extract(value, '$[0]') as asked_topic, json_extract(value, '$[1]') as key
  from json_each(?)
)
select {keyed} from jobs
where ordinal in (
  select (
    select ordinal from jobs
    where topic = asked_topic and idempotency_key = key and idempotency_key <> job_id
    order by status in ('pending', 'leased') desc, ordinal desc
    limit 1
  )
  from asked
  union all
  select ordinal from asked
  join jobs on job_id = key and idempotency_key = job_id and topic = asked_topic
)
order by status in ('pending', 'leased'), ordinal

-- name: add
-- a new job; the columns that it has
insert into jobs ({set}) values ({marks})

-- name: by_ordinals
-- the jobs of places in the history; ordinals: [ordinal, …]
select {columns} from jobs where ordinal in (select value from json_each(?))

-- name: change
-- a known job; the columns that have changed
update jobs set {changes} where ordinal = ?

-- name: place
-- a job takes another place in its line, or before its resource
update jobs set line = ?, waits_for = ? where ordinal = ?

-- name: count
-- so many more jobs of a topic have a status, with so many bytes of payloads
insert into counts (topic, status, number, bytes) values (?, ?, ?, ?)
on conflict (topic, status) do update
set number = number + excluded.number, bytes = bytes + excluded.bytes

-- name: drop
-- a pruned job goes
delete from jobs where job_id = ?

-- name: timed
-- every job that boot time is kept of
select {columns} from jobs where status = 'leased'
union all
select {columns} from jobs indexed by jobs_waiting
where status = 'pending' and (waits_for is not null or due_boot_us > 0 or due_at > '')
  and due_boot_us > 0
union all
select {columns} from jobs
where status = 'pending' and expire_boot_us > 0 and due_boot_us = 0

-- name: aside
-- whether jobs are due that had to wait, by boot time and by wall time; whether a topic is paused
select
  exists (select 1 from jobs
    where status = 'pending' and waits_for is null and due_boot_us > 0 and due_boot_us <= :boot_us),
  exists (select 1 from jobs
    where status = 'pending' and waits_for is null and due_at > '' and due_at <= :now),
  exists (select 1 from topics where status = 'paused')

-- name: ready
-- jobs of a topic that need not wait, in claim order
select {columns} from jobs
where status = 'pending' and waits_for is null and due_boot_us = 0 and due_at = '' and topic = ?
order by priority desc, ordinal
limit ?

-- name: ready_keys
-- their places in the claim order, from the index alone
select priority, ordinal from jobs
where status = 'pending' and waits_for is null and due_boot_us = 0 and due_at = '' and topic = ?
order by priority desc, ordinal
limit ?

-- name: ready_priority
-- the next lower priority of a topic whose jobs need not wait
select max(priority) from jobs
where status = 'pending' and waits_for is null and due_boot_us = 0 and due_at = '' and topic = ? and priority < ?

-- name: heads
-- the first job of each topic that need not wait, in claim order; topics: [topic, …]
with firsts as (
  select (
    select ordinal from jobs
    where status = 'pending' and waits_for is null and due_boot_us = 0 and due_at = '' and topic = asked.value
    order by priority desc, ordinal
    limit 1
  ) as first
  from json_each(:topics) as asked
)
select topic, priority, ordinal from firsts
cross join jobs on ordinal = first
order by priority desc, ordinal
limit :limit

-- name: delayed
-- jobs of a topic and a priority that had to wait and are due
select {columns} from jobs
where status = 'pending' and waits_for is null and due_boot_us > 0
  and topic = ? and priority = ? and due_boot_us <= ?
order by due_boot_us, ordinal
limit ?

-- name: delayed_priority
-- the next lower priority of a topic whose jobs wait
select max(priority) from jobs
where status = 'pending' and waits_for is null and due_boot_us > 0 and topic = ? and priority < ?

-- name: dated
-- jobs of a topic and a priority whose hour, given by the user, has come
select {columns} from jobs
where status = 'pending' and waits_for is null and due_at > ''
  and topic = ? and priority = ? and due_at <= ?
order by due_at, ordinal
limit ?

-- name: dated_priority
-- the next lower priority of a topic whose jobs wait for an hour
select max(priority) from jobs
where status = 'pending' and waits_for is null and due_at > '' and topic = ? and priority < ?

-- name: pending_topics
-- topics with jobs that are pending
select topic from counts where status = 'pending' and number > 0

-- name: paused
-- topics that are paused
select topic from topics where status = 'paused'

-- name: late
-- leases that have run out; after a reboot lease_boot_us is null
select {columns} from jobs where status = 'leased' and lease_boot_us is null
union all
select {columns} from jobs where status = 'leased' and lease_boot_us <= ?
limit ?

-- name: expired
-- pending jobs whose time is over
select {columns} from jobs
where status = 'pending' and expire_boot_us > 0 and expire_boot_us <= ?
order by expire_boot_us
limit ?

-- name: by_age
-- jobs from a place on, oldest first, without payload and result
select {narrow} from jobs where ordinal > ? order by ordinal limit ?

-- name: held_by
-- what a worker holds
select {columns} from jobs where status = 'leased' and locked_by = ?

-- name: next_due
-- when the first of the jobs that wait is due, by boot time and by wall time
select
  (select min(due_boot_us) from jobs
    where status = 'pending' and waits_for is null and due_boot_us > 0 and due_boot_us > :boot_us),
  (select min(due_at) from jobs
    where status = 'pending' and waits_for is null and due_at > '' and due_at > :now)

-- name: counts
-- jobs by topic and status
select topic, status, number from counts where number > 0 order by topic, status

-- name: enqueued_since
-- how many jobs came after an event
select count(*) from jobs where ordinal > ?

-- name: select
-- jobs that a person chose, oldest first; error is a part of its type or its words
select {columns} from jobs {chosen}
  and ordinal > :after
  and (:topic is null or topic = :topic)
  and (:error is null
    or instr(lower(coalesce(error_type, '') || ': ' || coalesce(last_error, '')), lower(:error)))
  and (:older_than is null or updated_at <= :older_than)
  and (:newer_than is null or updated_at >= :newer_than)
order by ordinal
limit :limit

-- name: to_cancel
-- which of the jobs that a worker holds are to be cancelled
select job_id from jobs
where status = 'leased' and cancel_requested_at is not null and locked_by = ?

-- name: put_topic
-- whether a topic is active or paused
insert or replace into topics (topic, status) values (?, ?)

-- name: topics
-- every topic that was ever paused, and whether it still is
select topic, status from topics order by topic
