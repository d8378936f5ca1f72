-- one row a step with its number among those of its kind in its run, and with the run's start
create or replace table told as
select
    steps.*,
    runs.lease_token,
    runs.start_us,
    coalesce(steps.worker, runs.worker) as run_worker,
    row_number() over (
        partition by steps.id, steps.run, steps.kind,
            case when steps.kind = 'requeue' then steps.place end
        order by steps.place
    ) as nth
from steps
left join runs on runs.id = steps.id and runs.run = steps.run
