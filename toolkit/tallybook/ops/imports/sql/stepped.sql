-- one row a step of a job: a start that names its own time is placed there
create or replace view stepped as
select
    rows.rowid + 1 as seq,
    rows.id,
    rows.topic,
    rows.worker,
    rows.word,
    rows.correlation_id,
    rows.error,
    rows.attempt,
    case when words.status = 'start' then coalesce(rows.start_us, rows.at_us) else rows.at_us end as at_us,
    rows.until_us,
    words.status as step,
    case
        when words.status in ('done', 'dead', 'cancelled', 'retry', 'release') then 'end'
        else words.status
    end as kind
from rows
inner join words on words.word = rows.word
where rows.kept and words.status <> 'ignore' and rows.rowid not in (select row from apart)
