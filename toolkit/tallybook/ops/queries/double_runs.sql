-- one row a pair of runs of one job that overlapped between $since and $until, where given
with again as (
    select distinct job_id
    from events
    where event = 'job.leased' and lease_token > 1
),
-- lean at first, since few of the jobs that were claimed again have runs that overlapped
signs as (
    select
        job_id,
        lease_token,
        started_at,
        case
            when event = 'job.extended' or settle = 'extend' or duration_ms is null then occurred_at
            else started_at + to_microseconds(cast(round(duration_ms * 1000) as bigint))
        end as until_at
    from events
    where started_at is not null and lease_token is not null and job_id in (select job_id from again)
),
intervals as (
    select job_id, lease_token, min(started_at) as started_at, max(until_at) as until_at
    from signs
    group by job_id, lease_token
),
overlapping as materialized (
    select distinct one.job_id
    from intervals as one
    inner join intervals as two on two.job_id = one.job_id and two.lease_token > one.lease_token
        and two.started_at < one.until_at and one.started_at < two.until_at
),
told as materialized (
    select job_id, lease_token, event, position, seq, segment, occurred_at, started_at, duration_ms, worker, settle,
        idempotency_key
    from events
    where job_id in (select job_id from overlapping)
),
runs as (
    select
        job_id,
        lease_token,
        any_value(worker) as worker,
        min(started_at) as started_at,
        max(
            case
                when event = 'job.extended' or settle = 'extend' or duration_ms is null then occurred_at
                else started_at + to_microseconds(cast(round(duration_ms * 1000) as bigint))
            end
        ) as until_at,
        any_value(event) filter (where event not in ('job.extended', 'job.settle_refused')) as settled_by,
        count(*) filter (where event = 'job.settle_refused' and settle is distinct from 'extend') as refused,
        list(seq order by position) as seqs,
        list(distinct segment order by segment) as segments
    from told
    where lease_token is not null and started_at is not null
    group by job_id, lease_token
),
keys as (
    select job_id, any_value(idempotency_key) as idempotency_key
    from told
    where event = 'job.enqueued'
    group by job_id
),
claims as (
    select job_id, lease_token, min(occurred_at) as leased_at
    from told
    where event = 'job.leased'
    group by job_id, lease_token
),
pairs as (
    select
        one.job_id,
        one.lease_token as first_token,
        one.worker as first_worker,
        one.started_at as first_started_at,
        one.until_at as first_until_at,
        two.lease_token as second_token,
        two.worker as second_worker,
        two.started_at as second_started_at,
        two.until_at as second_until_at,
        greatest(one.started_at, two.started_at) as overlap_from_at,
        least(one.until_at, two.until_at) as overlap_until_at,
        case when one.settled_by is not null then one.lease_token when two.settled_by is not null
            then two.lease_token end as winner_token,
        coalesce(one.settled_by, two.settled_by) as winner_event,
        list_filter([case when one.refused > 0 then one.lease_token end, case when two.refused > 0
            then two.lease_token end], lambda token: token is not null) as refused_tokens,
        list_sort(one.seqs || two.seqs) as evidence,
        list_sort(list_distinct(one.segments || two.segments)) as segments
    from runs as one
    inner join runs as two on two.job_id = one.job_id and two.lease_token > one.lease_token
        and two.started_at < one.until_at and one.started_at < two.until_at
)
select
    pairs.job_id,
    keys.idempotency_key,
    first_token,
    first_worker,
    first_started_at,
    first_until_at,
    second_token,
    second_worker,
    claims.leased_at as second_leased_at,
    second_started_at,
    second_until_at,
    (epoch_us(overlap_until_at) - epoch_us(overlap_from_at)) / 1000000.0 as overlap_s,
    winner_token,
    split_part(winner_event, '.', 2) as winner_settle,
    refused_tokens,
    evidence,
    segments
from pairs
left join keys on keys.job_id = pairs.job_id
left join claims on claims.job_id = pairs.job_id and claims.lease_token = pairs.second_token
where ($since::timestamptz is null or overlap_until_at >= $since::timestamptz)
    and ($until::timestamptz is null or overlap_from_at < $until::timestamptz)
order by overlap_from_at, pairs.job_id, first_token, second_token
