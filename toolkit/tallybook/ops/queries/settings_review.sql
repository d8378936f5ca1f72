-- one row a topic: what was measured between $since and $until that its settings must fit
with seen as (
    select *
    from events
    where event in ('job.leased', 'job.extended', 'job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed',
                    'job.lease_expired', 'job.settle_refused')
        and occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
),
lengths as (
    select topic, arg_max(lease_ms, position) as lease_ms
    from seen
    where event = 'job.leased' and lease_ms is not null
    group by topic
),
gaps as (
    select
        topic,
        event,
        lease_ms,
        (epoch_us(occurred_at) - lag(epoch_us(occurred_at)) over (partition by job_id, lease_token order by position))
            / 1000.0 as gap_ms
    from seen
    where event in ('job.leased', 'job.extended')
        and job_id in (select job_id from seen where event = 'job.extended')
),
beaten as (
    select
        topic,
        count(*) as beats,
        max(gap_ms) / 1000.0 as longest_gap_s,
        count(*) filter (where gap_ms > lease_ms / 2) as late_beats
    from gaps
    where event = 'job.extended' and gap_ms is not null
    group by topic
),
measured as (
    select
        seen.topic,
        count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')
            and (started_at is not null or error_type = 'TimedOut')) as runs,
        count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')) as ends,
        quantile_cont(duration_ms, [0.5, 0.99])
            filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')) as run_ms,
        max(duration_ms) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')) as longest_ms,
        count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')
            and duration_ms > lengths.lease_ms) as over_lease,
        count(*) filter (where event = 'job.lease_expired' and coalesce(reason, 'expired') = 'expired') as expired,
        count(*) filter (where event = 'job.settle_refused' and settle is distinct from 'extend') as refused,
        count(*) filter (where event in ('job.retry_scheduled', 'job.dead') and error_type = 'TimedOut') as timed_out,
        count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')
            and duration_ms > 800 * timeouts.timeout_s and timeouts.timeout_s > 0) as near_timeout,
        count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead')
            and duration_ms > 1000 * timeouts.max_run_s and timeouts.max_run_s > 0) as over_max_run,
        count(*) filter (where event = 'job.retry_scheduled') as retries,
        count(*) filter (where event = 'job.retry_scheduled' and retry_after_ms > delay_ms) as too_soon,
        max(retry_after_ms) / 1000.0 as longest_retry_after_s,
        count(*) filter (where event in ('job.retry_scheduled', 'job.dead') and attempt_count > 1) as failed_again,
        count(*) filter (where event in ('job.done', 'job.retry_scheduled', 'job.dead') and attempt_count > 1)
            as again,
        count(*) filter (where event = 'job.dead' and reason = 'out_of_attempts') as exhausted,
        count(*) filter (where event = 'job.dead' and reason = 'killed_workers') as killed,
        max(attempt_count) filter (where event = 'job.done') as most_attempts
    from seen
    left join lengths on lengths.topic = seen.topic
    left join (
        select
            unnest($topics::varchar[]) as topic,
            unnest($timeouts_s::double[]) as timeout_s,
            unnest($max_runs_s::double[]) as max_run_s
    ) as timeouts on timeouts.topic = seen.topic
    group by seen.topic
)
select
    measured.*,
    lengths.lease_ms / 1000.0 as lease_s,
    run_ms[1] / 1000.0 as run_p50_s,
    run_ms[2] / 1000.0 as run_p99_s,
    longest_ms / 1000.0 as run_max_s,
    coalesce(beaten.beats, 0) as beats,
    beaten.longest_gap_s,
    coalesce(beaten.late_beats, 0) as late_beats
from measured
left join lengths on lengths.topic = measured.topic
left join beaten on beaten.topic = measured.topic
order by measured.topic
