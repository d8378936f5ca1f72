-- name: schema
-- one row a job; ordinal is its place in the history, so its age
create table jobs (
  ordinal integer primary key,
  job_id text not null unique,
  topic text not null,
  payload text not null,
  payload_digest text not null,
  idempotency_key text not null,
  status text not null,
  priority integer not null,
  attempt_count integer not null,
  rescue_count integer not null,
  max_attempts integer not null,
  next_attempt_at text,
  delay_ms integer,
  due_boot_us integer not null,
  due_at text not null,
  last_error text,
  error_type text,
  locked_by text,
  locked_until text,
  lease_token integer not null,
  lease_ms integer,
  lease_boot_us integer,
  correlation_id text,
  enqueued_from text,
  resource text,
  ordering_key text,
  expires_at text,
  timeout_s real,
  result text,
  created_at text not null,
  updated_at text not null,
  finished_at text
) strict;
create unique index jobs_by_key on jobs (topic, idempotency_key);
create index jobs_pending on jobs (priority desc, due_boot_us, ordinal) where status = 'pending';
create index jobs_leased on jobs (lease_boot_us) where status = 'leased';
create index jobs_held on jobs (locked_by) where status = 'leased';
create index jobs_due on jobs (due_boot_us) where status = 'pending' and due_boot_us > 0;
create index jobs_due_at on jobs (due_at) where status = 'pending' and due_at > '';
create index jobs_by_status on jobs (topic, status);
create table topics (
  topic text primary key,
  status text not null
) strict;

-- name: get
-- the job of an id
select {columns} from jobs where job_id = ?

-- name: by_keys
-- which jobs hold idempotency keys, with the digest of their payload; keys: [[topic, key], …]
select jobs.topic, jobs.idempotency_key, jobs.job_id, jobs.payload_digest
from json_each(?) as asked
join jobs
  on jobs.topic = json_extract(asked.value, '$[0]')
  and jobs.idempotency_key = json_extract(asked.value, '$[1]')

-- name: put
-- a job, new or changed; what enqueueing fixed never changes
insert into jobs ({columns}) values ({marks})
on conflict (job_id) do update set
  status = excluded.status,
  attempt_count = excluded.attempt_count,
  rescue_count = excluded.rescue_count,
  next_attempt_at = excluded.next_attempt_at,
  delay_ms = excluded.delay_ms,
  due_boot_us = excluded.due_boot_us,
  due_at = excluded.due_at,
  last_error = excluded.last_error,
  error_type = excluded.error_type,
  locked_by = excluded.locked_by,
  locked_until = excluded.locked_until,
  lease_token = excluded.lease_token,
  lease_ms = excluded.lease_ms,
  lease_boot_us = excluded.lease_boot_us,
  result = excluded.result,
  updated_at = excluded.updated_at,
  finished_at = excluded.finished_at

-- name: drop
-- a pruned job goes
delete from jobs where job_id = ?

-- name: open
-- every job that has not ended
select {columns} from jobs where status in ('pending', 'leased')

-- name: ready
-- what may be claimed now, in claim order
select {columns} from jobs
where status = 'pending'
  and due_boot_us <= :boot_us
  and due_at <= :now
  and topic not in (select topic from topics where status = 'paused')
  and (:topics is null or topic in (select value from json_each(:topics)))
order by priority desc, due_boot_us, ordinal
limit :limit

-- name: late
-- leases that have run out; after a reboot lease_boot_us is null
select {columns} from jobs
where status = 'leased' and (lease_boot_us is null or lease_boot_us <= ?)
limit ?

-- name: held_by
-- what a worker holds
select {columns} from jobs where status = 'leased' and locked_by = ?

-- name: next_due
-- when the first of the jobs that wait is due, by boot time and by wall time
select
  (select min(due_boot_us) from jobs
    where status = 'pending' and due_boot_us > 0 and due_boot_us > :boot_us),
  (select min(due_at) from jobs
    where status = 'pending' and due_at > '' and due_at > :now)

-- name: counts
-- jobs by topic and status
select topic, status, count(*) from jobs group by topic, status order by topic, status

-- name: oldest_pending
-- when the oldest pending job came
select created_at from jobs where status = 'pending' order by ordinal limit 1

-- name: enqueued_since
-- how many jobs came after an event
select count(*) from jobs where ordinal > ?

-- name: select
-- jobs by status and topic, oldest first
select {columns} from jobs
where (:status is null or status = :status) and (:topic is null or topic = :topic)
order by ordinal
limit :limit

-- name: put_topic
-- whether a topic is active or paused
insert or replace into topics (topic, status) values (?, ?)

-- name: topics
-- every topic that was ever paused, and whether it still is
select topic, status from topics order by topic
