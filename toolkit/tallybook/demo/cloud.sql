-- name: schema
-- the cloud's rows, the keys it has seen, and its ledgers
create table airports (
    icao text primary key,
    iata text, name text, city text, subd text, country text,
    elevation real, lat real, lon real,
    tz text, lid text
) without rowid;
create table keys (
    idempotency_key text primary key,
    request_digest text not null,
    record text not null,
    status integer,
    answer text
) without rowid;
create table requests (
    request_id integer primary key,
    idempotency_key text not null,
    record text not null,
    attempt integer not null,
    lease_token integer not null,
    correlation_id text,
    fault text,
    arrived_at text not null,
    status integer,
    replayed integer not null default 0,
    ended text
);
create table tampered (record text not null, kind text not null);

-- name: forget_unanswered
-- keys of a life of this process that ended before their answer was stored
delete from keys where status is null

-- name: arrive
-- a request is in the ledger before anything is done about it
insert into requests (idempotency_key, record, attempt, lease_token, correlation_id, fault, arrived_at)
values (:idempotency_key, :record, :attempt, :lease_token, :correlation_id, :fault, :arrived_at)

-- name: end
-- what became of a request: answered, lost (cut off by the injector) or client_gone
update requests set status = :status, replayed = :replayed, ended = :ended
where request_id = :request_id

-- name: register
-- a key counts from its arrival
insert into keys (idempotency_key, request_digest, record)
values (:idempotency_key, :request_digest, :record)
on conflict do nothing

-- name: key
-- what is known of a key
select request_digest, status, answer from keys where idempotency_key = :idempotency_key

-- name: answer
-- the answer of a key, stored in one transaction with its effect
update keys set status = :status, answer = :answer where idempotency_key = :idempotency_key

-- name: put
-- the effect of a delivery; also an added row
insert or replace into airports
values (:icao, :iata, :name, :city, :subd, :country, :elevation, :lat, :lon, :tz, :lid)

-- name: delete
-- one row goes behind the system's back
delete from airports where icao = :icao

-- name: row
-- one row by its code
select * from airports where icao = :icao

-- name: tamper
-- the ledger of what went on behind the system's back
insert into tampered (record, kind) values (:record, :kind)

-- name: rows
-- the export
select icao, iata, name, city, subd, country, elevation, lat, lon, tz, lid
from airports order by icao

-- name: planted_answer_lost
-- the injector cut the connection after the commit
select distinct record from requests where ended = 'lost'

-- name: planted_retried
-- no answer came through, or one that asks for patience, or the cloud saw a second attempt
select distinct record from requests
where ended in ('lost', 'client_gone') or status in (429, 503) or attempt > 1

-- name: planted_dead
-- the cloud refused the record for good
select distinct record from requests where status = 422 and ended = 'answered'

-- name: planted_delivered_twice
-- the cloud answered from the stored answer of the key
select distinct record from requests where replayed and ended = 'answered'

-- name: planted_changed
-- cells changed behind the system's back
select distinct record from tampered where kind = 'changed'

-- name: planted_missing
-- rows deleted behind the system's back
select distinct record from tampered where kind = 'missing'

-- name: planted_extra
-- rows added behind the system's back
select distinct record from tampered where kind = 'extra'

-- name: planted_rebuilt
-- records that the cloud accepted, whose cache entries are then lost
select record from keys where status between 200 and 299
