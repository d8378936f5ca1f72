-- one row a step of a job that is not plain; `run` tells its runs apart
create or replace table steps as
with counted as (
    select
        *,
        count(*) filter (where step = 'start')
            over (partition by id order by place rows unbounded preceding) as starts
    from placed
    where getvariable('odd') > 0 and id not in (select id from lives)
)
select
    *,
    case
        when step in ('submit', 'requeue') then null
        when attempt is not null then attempt
        when starts > 0 then '#' || starts
    end as run
from counted
