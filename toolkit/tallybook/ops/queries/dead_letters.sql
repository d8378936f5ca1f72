-- one row a job that lies in the dead letters and died between $since and $until, of $topic and with $error in its error, where given
with deaths as (
    select
        job_id,
        count(*) filter (where event = 'job.dead') as deaths,
        count(*) filter (where event = 'job.requeued') as requeues,
        arg_max(http_status, position) filter (where event = 'job.dead') as http_status,
        arg_max(reason, position) filter (where event = 'job.dead') as reason,
        list(seq order by position) filter (where event = 'job.dead') as evidence
    from events
    where event in ('job.dead', 'job.requeued')
    group by job_id
),
letters as (
    select
        jobs.job_id,
        jobs.idempotency_key,
        jobs.topic,
        coalesce(jobs.error_type, deaths.reason, '(none)') as error_type,
        deaths.http_status,
        jobs.last_error as error,
        jobs.attempt_count,
        jobs.rescue_count,
        deaths.requeues,
        jobs.created_at,
        jobs.finished_at as died_at,
        deaths.evidence,
        jobs.position
    from jobs
    inner join deaths on deaths.job_id = jobs.job_id
    where jobs.status = 'dead' and jobs.pruned_at is null
)
select
    * exclude (position),
    case
        when error_type in ('AnswerLost', 'TimedOut', 'NotReached') or http_status in (408, 425, 429)
            or http_status >= 500 then 'may pass'
        when http_status >= 400 or error_type in ('BadAddress', 'PayloadDoesNotFit', 'PayloadLost') then 'stays'
        else 'unknown'
    end as outlook
from letters
where ($topic = '' or topic = $topic)
    and ($error = '' or contains(lower(concat_ws(' ', error_type, error)), lower($error)))
    and ($since::timestamptz is null or died_at >= $since::timestamptz)
    and ($until::timestamptz is null or died_at < $until::timestamptz)
order by died_at, position
