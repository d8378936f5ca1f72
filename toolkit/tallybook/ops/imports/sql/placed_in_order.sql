-- one row a step of a job, of rows that are in order of time: `place` is the number of the row
create or replace view placed as
select
    rows.rowid + 1 as seq,
    rows.id,
    rows.topic,
    rows.worker,
    rows.word,
    rows.correlation_id,
    rows.error,
    rows.attempt,
    rows.at_us as at_us,
    rows.until_us,
    words.status as step,
    case
        when words.status in ('done', 'dead', 'cancelled', 'retry', 'release') then 'end'
        else words.status
    end as kind,
    rows.rowid + 1 as place
from rows
inner join words on words.word = rows.word
where rows.kept and words.status <> 'ignore' and rows.rowid not in (select row from apart)
