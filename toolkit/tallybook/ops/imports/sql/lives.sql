-- one row a plain job: at most one submit, start and end, told in that order, of one topic and correlation id
create or replace table lives as
select
    id,
    min(place) as first_place,
    count(*) as steps,
    count(*) filter (where kind = 'submit') as submits,
    count(*) filter (where kind = 'start') as starts,
    count(*) filter (where kind = 'end') as ends,
    count(*) filter (where step = 'cancelled') as cancelled,
    min(at_us) filter (where kind = 'start') as start_us,
    min(worker) filter (where kind = 'start') as start_worker
from placed
group by id
having submits <= 1 and starts <= 1 and ends <= 1
    and steps = submits + starts + ends
    and count(attempt) = 0
    and count(*) filter (where step in ('retry', 'release')) = 0
    and coalesce(min(place) filter (where kind = 'submit') = first_place, true)
    and coalesce(max(place) filter (where kind = 'end') > min(place) filter (where kind = 'start'), true)
    and count(topic) in (0, steps) and min(topic) is not distinct from max(topic)
    and count(correlation_id) in (0, steps) and min(correlation_id) is not distinct from max(correlation_id)
