-- one row a run of a job: its number, from 1 in order of its start, and when that was
create or replace table runs as
with begun as (
    select
        id,
        run,
        min(place) as place,
        arg_min(at_us, place) as start_us,
        arg_min(worker, place) as worker
    from steps
    where kind = 'start'
    group by id, run
)
select *, row_number() over (partition by id order by place) as lease_token
from begun
