-- one row an entry of $keys: the last value that both sides had, which a job delivered or the cloud gave
select
    events.key,
    cast(arg_max(events.value, events.position) as varchar) as value
from events
left join jobs on jobs.job_id = events.job_id
where events.event = 'cache.put'
    and list_contains($keys, events.key)
    and (events.origin = 'cloud' or jobs.status = 'done')
group by events.key
