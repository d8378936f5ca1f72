-- one row a topic whose jobs were claimed between $since and $until
select distinct topic
from events
where event = 'job.leased' and topic is not null
    and occurred_at >= $since::timestamptz and occurred_at < $until::timestamptz
order by topic
