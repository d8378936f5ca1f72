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
)
select
    count(*) as jobs,
    any_value(steps_told.used) as used,
    count(*) filter (where start_us is null) as never_started,
    count(*) filter (where last_step is null or last_step not in ('done', 'dead', 'cancelled')) as open,
    count(*) filter (where start_us < submit_us) as negative_waits,
    coalesce(any_value(steps_told.negative_runs), 0) as negative_runs,
    coalesce(any_value(steps_told.ends_without_start), 0) as ends_without_start,
    count(*) filter (where submit_us is null) as no_submit,
    coalesce(any_value(steps_told.repeated_submits), 0) as repeated_submits,
    coalesce(any_value(steps_told.repeated_starts), 0) as repeated_starts,
    coalesce(any_value(steps_told.repeated_ends), 0) as repeated_ends
from jobs_read
cross join steps_told
