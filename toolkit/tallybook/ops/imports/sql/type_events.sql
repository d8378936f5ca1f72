-- one row a row of a file that tells of one event: its text cells typed by the macros of the profile
select
    id,
    topic,
    worker,
    event as word,
    correlation_id,
    error,
    attempt,
    at_us,
    start_us,
    until_us,
    case
        when unread is not null then unread
        when at_us is null and "at" is not null then 'at: no time: ' || "at"
        when start_us is null and "start" is not null then 'start: no time: ' || "start"
        when until_us is null and until is not null then 'until: no time: ' || until
    end as bad,
    kept
from (
    select
        *,
        instant("at") as at_us,
        instant("start") as start_us,
        instant(until) as until_us
    from cells
)
