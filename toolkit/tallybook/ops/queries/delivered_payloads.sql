-- one row a delivery whose handler wrote an entry, the newest $most: topic, payload, value
select
    jobs.topic,
    cast(jobs.payload as varchar) as payload,
    cast(events.value as varchar) as value
from events
inner join jobs on jobs.job_id = events.job_id
where events.event = 'cache.put' and jobs.status = 'done'
order by events.position desc
limit $most
