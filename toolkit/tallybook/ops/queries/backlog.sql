-- one row a topic, and one for all (topic null): what stands at $until, and what came and went since $since
with standing as (
    select
        -- that of its enqueue; of a job whose enqueue is not in the log that of its first event
        coalesce(any_value(topic) filter (where event = 'job.enqueued'), arg_min(topic, position)) as topic,
        arg_max(event, position) as event,
        arg_max_null(next_attempt_at, position) as next_attempt_at
    from events
    where event in ('job.enqueued', 'job.retry_scheduled', 'job.snoozed', 'job.lease_expired', 'job.released',
                    'job.requeued', 'job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded', 'job.pruned')
        and occurred_at < $until::timestamptz
    group by job_id
),
depths as (
    select
        topic,
        count(*) filter (where event not in ('job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded',
                                             'job.pruned')) as pending,
        count(*) filter (where event not in ('job.leased', 'job.done', 'job.dead', 'job.cancelled', 'job.discarded',
                                             'job.pruned')
            and coalesce(next_attempt_at, $until::timestamptz) <= $until::timestamptz) as due,
        count(*) filter (where event = 'job.leased') as leased
    from standing
    group by grouping sets ((topic), ())
),
passed as (
    select
        topic,
        event,
        occurred_at,
        worker,
        duration_ms,
        occurred_at >= $since::timestamptz + ($until::timestamptz - $since::timestamptz) / 2 as is_late,
        coalesce(http_status = 429 or http_status >= 500 or error_type in ('AnswerLost', 'TimedOut'), false)
            as is_unanswered
    from events
    where event in ('job.enqueued', 'job.leased', 'job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed')
        and occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
),
counted as (
    select
        topic,
        count(*) filter (where event = 'job.enqueued') as arrivals,
        count(*) filter (where event in ('job.done', 'job.dead')) as completions,
        count(duration_ms) as runs,
        count(*) filter (where event in ('job.retry_scheduled', 'job.dead')) as failed,
        count(*) filter (where event in ('job.retry_scheduled', 'job.dead') and is_unanswered) as unanswered,
        coalesce(sum(duration_ms), 0) / 1000.0 as run_sum_s,
        count(duration_ms) filter (where not is_late) as early_runs,
        count(duration_ms) filter (where is_late) as late_runs,
        quantile_cont(duration_ms, 0.5) filter (where not is_late) / 1000.0 as early_p50_s,
        quantile_cont(duration_ms, 0.5) filter (where is_late) / 1000.0 as late_p50_s,
        count(*) filter (where event = 'job.leased') as claimed,
        count(distinct worker) as workers
    from passed
    group by grouping sets ((topic), ())
),
claims as (
    select topic, count(*) as claims
    from (select distinct topic, worker, occurred_at from passed where event = 'job.leased')
    group by grouping sets ((topic), ())
),
threads as (
    select events.worker, greatest(coalesce(max(events.threads), 1), 1) as threads
    from events
    where events.worker in (select worker from passed)
    group by events.worker
),
slots as (
    select cast(coalesce(sum(threads), 0) as bigint) as slots
    from threads
),
paused as (
    select topic, arg_max(event, position) = 'topic.paused' as is_paused
    from events
    where event in ('topic.paused', 'topic.resumed') and occurred_at < $until::timestamptz
    group by topic
)
select
    depths.topic,
    depths.pending,
    depths.due,
    depths.leased,
    (epoch_us($until::timestamptz) - epoch_us($since::timestamptz)) / 1000000.0 as window_s,
    coalesce(counted.arrivals, 0) as arrivals,
    coalesce(counted.completions, 0) as completions,
    coalesce(counted.runs, 0) as runs,
    coalesce(counted.failed, 0) as failed,
    coalesce(counted.unanswered, 0) as unanswered,
    coalesce(counted.run_sum_s, 0) as run_sum_s,
    coalesce(counted.early_runs, 0) as early_runs,
    coalesce(counted.late_runs, 0) as late_runs,
    counted.early_p50_s,
    counted.late_p50_s,
    coalesce(counted.claimed, 0) as claimed,
    coalesce(claims.claims, 0) as claims,
    coalesce(counted.workers, 0) as workers,
    slots.slots,
    coalesce(paused.is_paused, false) as is_paused
from depths
cross join slots
left join counted on counted.topic is not distinct from depths.topic
left join claims on claims.topic is not distinct from depths.topic
left join paused on paused.topic = depths.topic
order by depths.topic nulls first
