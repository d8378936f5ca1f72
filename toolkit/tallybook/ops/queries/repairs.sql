-- one row a log.repaired between $since and $until, where given: what it says was lost or cut, and why
select occurred_at as repaired_at, reason, named_writer as lost_writer, first_lost_seq, last_lost_seq, writer, seq
from stored()
where event = 'log.repaired'
    and ($since::timestamptz is null or occurred_at >= $since::timestamptz)
    and ($until::timestamptz is null or occurred_at < $until::timestamptz)
order by position
