-- one row: what is true of the jobs that were read
with steps_told as (
    select
        count(*) as used,
        count(*) filter (where nth > 1 and kind = 'submit') as repeated_submits,
        count(*) filter (where nth > 1 and kind = 'start') as repeated_starts,
        count(*) filter (where nth > 1 and kind = 'end') as repeated_ends,
        count(*) filter (where nth = 1 and step in ('done', 'dead', 'retry', 'release') and start_us is null)
            as ends_without_start,
        count(*) filter (where nth = 1 and kind = 'end' and at_us < start_us) as negative_runs
    from told
),
plain as (
    select
        count(*) as jobs,
        coalesce(sum(steps), 0) as used,
        count(*) filter (where starts = 0) as never_started,
        count(*) filter (where ends = 0) as open,
        count(*) filter (where ends = 1 and starts = 0 and cancelled = 0) as ends_without_start,
        count(*) filter (where submits = 0) as no_submit
    from lives
)
select
    count(job_id) + any_value(plain.jobs) as jobs,
    any_value(steps_told.used) + any_value(plain.used) as used,
    count(job_id) filter (where start_us is null) + any_value(plain.never_started) as never_started,
    count(job_id) filter (where last_step is null or last_step not in ('done', 'dead', 'cancelled'))
    + any_value(plain.open) as open,
    count(*) filter (where start_us < submit_us) as negative_waits,
    coalesce(any_value(steps_told.negative_runs), 0) as negative_runs,
    any_value(steps_told.ends_without_start) + any_value(plain.ends_without_start) as ends_without_start,
    count(job_id) filter (where submit_us is null) + any_value(plain.no_submit) as no_submit,
    coalesce(any_value(steps_told.repeated_submits), 0) as repeated_submits,
    coalesce(any_value(steps_told.repeated_starts), 0) as repeated_starts,
    coalesce(any_value(steps_told.repeated_ends), 0) as repeated_ends
from plain
cross join steps_told
left join jobs_read on true
