-- one row a job of an event list, as its steps tell it
create or replace table jobs_read as
with first_submits as (
    select id, min(at_us) as submit_us, arg_min(seq, place) as seq
    from steps
    where step = 'submit'
    group by id
)
select
    steps.id as job_id,
    8 * min(steps.place) as position,
    coalesce(any_value(first_submits.seq), arg_min(steps.seq, steps.place)) as seq,
    coalesce(any_value(first_submits.submit_us), min(steps.at_us)) as enqueued_us,
    coalesce(arg_min(steps.topic, steps.place), 'job') as topic,
    arg_min(steps.correlation_id, steps.place) as correlation_id,
    any_value(first_submits.submit_us) as submit_us,
    min(steps.at_us) filter (where steps.step = 'start') as start_us,
    arg_max(steps.step, steps.place) filter (where steps.step <> 'submit') as last_step
from steps
left join first_submits on first_submits.id = steps.id
group by steps.id
