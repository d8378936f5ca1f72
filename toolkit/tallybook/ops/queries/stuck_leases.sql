-- one row a lease that its holder did not end in time, as of $at or the end of the log
with clock as (
    select coalesce($at::timestamptz, max(occurred_at)) as now_at
    from events
),
judged as (
    select
        leases.*,
        case
            when leases.refused > 0 and leases.how in ('expired', 'reboot') then 'refused'
            when leases.how in ('expired', 'reboot') then leases.how
            when leases.how = 'open' and leases.locked_until < clock.now_at then 'overdue'
            when leases.how in ('done', 'retry', 'dead', 'snoozed') and leases.ended_at > leases.locked_until then 'late'
        end as verdict
    from leases
    cross join clock
)
select
    judged.job_id,
    jobs.idempotency_key,
    judged.lease_token,
    judged.topic,
    judged.worker,
    judged.verdict as how,
    judged.leased_at,
    judged.locked_until,
    judged.started_at,
    judged.ended_at,
    judged.refused_at,
    judged.next_worker,
    judged.next_leased_at,
    jobs.status as job_status,
    list_filter([judged.leased_seq, judged.ended_seq] || judged.refused_seqs, lambda number: number is not null) as evidence,
    'tallybook trace ' || judged.job_id as command
from judged
left join jobs on jobs.job_id = judged.job_id
where judged.verdict is not null
order by judged.leased_at, judged.job_id, judged.lease_token
