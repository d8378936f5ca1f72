-- one row a row of a file that tells of a job: its text cells typed by the macros of the profile
select
    id,
    topic,
    worker,
    status as word,
    correlation_id,
    error,
    submit_us,
    coalesce(start_us, submit_us + wait_us) as start_us,
    coalesce(end_us, coalesce(start_us, submit_us + wait_us) + run_us) as end_us,
    until_us,
    case
        when unread is not null then unread
        when submit_us is null and submit is not null then 'submit: no time: ' || submit
        when start_us is null and "start" is not null then 'start: no time: ' || "start"
        when end_us is null and "end" is not null then 'end: no time: ' || "end"
        when until_us is null and until is not null then 'until: no time: ' || until
        when wait_us is null and wait is not null then 'wait: no number: ' || wait
        when run_us is null and run is not null then 'run: no number: ' || run
        when id is null and getvariable('has_id') then 'id: the row has none'
        when coalesce(submit_us, start_us, end_us) is null then 'no time of submit, start or end'
    end as bad,
    kept
from (
    select
        *,
        instant(submit) as submit_us,
        instant("start") as start_us,
        instant("end") as end_us,
        instant(until) as until_us,
        counted_us(wait, getvariable('unit_us')) as wait_us,
        counted_us(run, getvariable('unit_us')) as run_us
    from cells
)
