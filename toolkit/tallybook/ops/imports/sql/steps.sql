-- one row a step of a job, in order of time; `place` orders them, `run` tells its runs apart
create or replace table steps as
with known as (
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
        row_number() over (
            order by case when words.status = 'start' then coalesce(rows.start_us, rows.at_us) else rows.at_us end,
                rows.rowid
        ) as place
    from rows
    inner join words on words.word = rows.word
    where rows.kept and words.status <> 'ignore' and rows.rowid not in (select row from apart)
),
counted as (
    select
        *,
        count(*) filter (where step = 'start')
            over (partition by id order by place rows unbounded preceding) as starts
    from known
)
select
    *,
    case
        when step in ('submit', 'requeue') then null
        when attempt is not null then attempt
        when starts > 0 then '#' || starts
    end as run,
    case
        when step in ('done', 'dead', 'cancelled', 'retry', 'release') then 'end'
        else step
    end as kind
from counted
