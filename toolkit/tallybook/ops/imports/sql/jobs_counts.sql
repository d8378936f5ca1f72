-- one row: what is true of the jobs that were read
select
    count(*) as jobs,
    count(*) filter (where start_us is null) as never_started,
    count(*) filter (where end_us is null) as open,
    count(*) filter (where start_us < submit_us) as negative_waits,
    count(*) filter (where end_us < start_us) as negative_runs,
    count(*) filter (where end_us is not null and start_us is null and status in ('done', 'dead')) as ends_without_start,
    count(*) filter (where submit_us is null) as no_submit,
    count(*) filter (where end_us is null and status in ('done', 'dead', 'cancelled')) as no_end_time,
    count(*) filter (where contradicted) as contradicted
from jobs_read
