-- name: fronts
-- the jobs at the front of lines, without payload and result; lines: [[topic, ordering key], …]
with asked as (
  select json_extract(value, '$[0]') as asked_topic, json_extract(value, '$[1]') as asked_key
  from json_each(?)
)
select {narrow} from asked
cross join jobs on line = 2 and topic = asked_topic and ordering_key = asked_key

-- name: firsts
-- the job that came first of each line, without payload and result; lines as before
with asked as (
  select json_extract(value, '$[0]') as asked_topic, json_extract(value, '$[1]') as asked_key
  from json_each(?)
),
firsts as (
  select (
    select ordinal from jobs
    where line > 0 and topic = asked_topic and ordering_key = asked_key
    order by ordinal
    limit 1
  ) as first
  from asked
)
select {narrow} from firsts
cross join jobs on ordinal = first

-- name: superseded
-- the pending jobs of a line, oldest first, without payload and result
select {narrow} from jobs
where line > 0 and topic = ? and ordering_key = ? and status = 'pending'
order by ordinal

-- name: standing
-- the jobs that could be claimed of resources, without payload and result; resources: [name, …]
select {narrow} from json_each(?)
cross join jobs on status = 'pending' and waits_for is null and resource is not null
  and resource = json_each.value

-- name: waiting
-- the first jobs that wait for resources, one of each topic that is ready, that is delayed and
-- that is dated, without payload and result; resources: [name, …]
with recursive asked as (
  select value as asked_resource, (
    select min(topic) from jobs where waits_for = 'resource' and resource = value
  ) as asked_topic
  from json_each(?)
  union all
  select asked_resource, (
    select min(topic) from jobs
    where waits_for = 'resource' and resource = asked_resource and topic > asked_topic
  )
  from asked
  where asked_topic is not null
),
firsts as (
  select (
    select ordinal from jobs
    where waits_for = 'resource' and resource = asked_resource and topic = asked_topic
      and due_boot_us = 0 and due_at = ''
    order by due_boot_us, due_at, priority desc, ordinal
    limit 1
  ) as first
  from asked
  union all
  select (
    select ordinal from jobs
    where waits_for = 'resource' and resource = asked_resource and topic = asked_topic
      and due_boot_us > 0
    order by due_boot_us, due_at, priority desc, ordinal
    limit 1
  )
  from asked
  union all
  select (
    select ordinal from jobs
    where waits_for = 'resource' and resource = asked_resource and topic = asked_topic
      and due_boot_us = 0 and due_at > ''
    order by due_boot_us, due_at, priority desc, ordinal
    limit 1
  )
  from asked
)
select {narrow} from firsts
cross join jobs on ordinal = first

-- name: lock
-- who has a resource
select {lock} from locks where resource = ?

-- name: locked
-- who has which of resources; resources: [name, …]
select {lock} from locks where resource in (select value from json_each(?))

-- name: locks
-- who has which resource, by name, with the end of the lease that the lock belongs to
select {lock}, (select locked_until from jobs where jobs.job_id = locks.job_id) from locks
where resource > :after
  and (:topic is null or topic = :topic)
  and (:worker is null or worker = :worker)
order by resource
limit :limit

-- name: put_lock
-- somebody has a resource
insert or replace into locks ({lock}) values ({lock_marks})

-- name: drop_lock
-- a job has a resource no more
delete from locks where resource = ?

-- name: bucket
-- when the bucket of a topic is full again
select full_us from buckets where topic = ?

-- name: buckets
-- when which bucket is full again
select topic, full_us from buckets

-- name: put_bucket
-- a claim took from a bucket
insert or replace into buckets (topic, full_us) values (?, ?)

-- name: drop_buckets
-- a new boot: all buckets are full
delete from buckets

-- name: depth
-- how many jobs of a topic have a status, and the bytes of their payloads
select number, bytes from counts where topic = ? and status = ?
