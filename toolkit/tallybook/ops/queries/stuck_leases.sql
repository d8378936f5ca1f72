-- one row a lease that its holder did not end in time, as of $at or the end of the log
with clock as (
    select coalesce($at::timestamptz, max(occurred_at)) as now_at
    from events
),
known as (
    select
        leases.*,
        clock.now_at,
        coalesce(leases.ended_at <= clock.now_at, false) as has_ended,
        coalesce(leases.refused_at <= clock.now_at, false) as was_refused,
        coalesce(leases.next_leased_at <= clock.now_at, false) as was_followed
    from leases
    cross join clock
    where leases.leased_at <= clock.now_at
),
judged as (
    select
        *,
        case
            when has_ended and how in ('expired', 'reboot', 'worker died')
                then case when was_refused then 'refused' else how end
            when not has_ended and locked_until < now_at then 'overdue'
            when has_ended and how in ('done', 'retry', 'dead', 'snoozed') and ended_at > locked_until then 'late'
        end as verdict
    from known
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
    case when judged.has_ended then judged.ended_at end as ended_at,
    case when judged.was_refused then judged.refused_at end as refused_at,
    case when judged.was_followed then judged.next_worker end as next_worker,
    case when judged.was_followed then judged.next_leased_at end as next_leased_at,
    jobs.status as job_status,
    list_filter(
        [judged.leased_seq, case when judged.has_ended then judged.ended_seq end]
        || case when judged.was_refused then judged.refused_seqs else [] end,
        lambda number: number is not null
    ) as evidence
from judged
left join jobs on jobs.job_id = judged.job_id
where judged.verdict is not null
order by judged.leased_at, judged.job_id, judged.lease_token
