-- one row a difference, in the order of $keys: its cause by the history of its key, and that history's end
with given as (
    select
        unnest(range(len($keys))) as n,
        unnest($statuses) as difference,
        unnest($keys) as key,
        unnest($local_rows::bigint[]) as local_row
),
changes as (
    select
        position,
        writer,
        seq,
        event,
        key as entry_key,
        try_cast(version as bigint) as version,
        coalesce(origin, 'local') as origin,
        coalesce(pending, false) as pending,
        job_id,
        occurred_at,
        coalesce(reason, '') as reason,
        case when event = 'cache.put' then list_transform($pointers, lambda pointer: coalesce(
            json_extract_string(value, pointer),
            case
                when pointer = '/key' then key
                when pointer = '/value' and json_type(value) <> 'OBJECT' then json_extract_string(value, '$')
            end
        )) end as cells,
        row_number() over (partition by key order by position desc) as newest
    from events
    where event in ('cache.put', 'cache.invalidated') and key is not null
),
cached as (
    select row_number() over (order by entry_key) as local_row, entry_key
    from changes
    where newest = 1 and event = 'cache.put'
),
told_names as (
    select distinct
        entry_key,
        case when len(cells) = 1 then cells[1] else cast(to_json(cells) as varchar) end as key
    from changes
    where cells is not null
),
entry_keys as (
    select given.n, cached.entry_key
    from given
    inner join cached on cached.local_row = given.local_row
    union
    select given.n, told_names.entry_key
    from given
    inner join told_names on told_names.key = given.key
    where given.local_row is null
    union
    select given.n, given.key
    from given
    where given.local_row is null and $pointers = ['/key']
),
last_changes as (
    select entry_keys.n, changes.* exclude (cells, newest)
    from entry_keys
    inner join changes on changes.entry_key = entry_keys.entry_key and changes.newest = 1
    qualify row_number() over (partition by entry_keys.n order by changes.position desc) = 1
),
enqueued as (
    select
        job_id,
        idempotency_key,
        ordering_key,
        resource,
        list_transform($pointers, lambda pointer: json_extract_string(payload, pointer)) as cells
    from events
    where event = 'job.enqueued'
),
job_names as (
    select
        job_id,
        unnest([
            case when len(cells) = 1 then cells[1] else cast(to_json(cells) as varchar) end,
            idempotency_key,
            ordering_key,
            resource
        ]) as name
    from enqueued
),
names as (
    select n, key as name from given
    union
    select n, entry_key as name from entry_keys
),
linked as (
    select names.n, job_names.job_id
    from names
    inner join job_names on job_names.name = names.name
    union
    select entry_keys.n, changes.job_id
    from entry_keys
    inner join changes on changes.entry_key = entry_keys.entry_key
    where changes.job_id is not null
),
runs as (
    select
        job_id,
        count(*) filter (
            where (event in ('job.retry_scheduled', 'job.dead') and error_type in ('AnswerLost', 'TimedOut'))
                or (event = 'job.settle_refused' and settle = 'done')
        ) as answers_lost,
        coalesce(bool_or(replayed), false) as replayed,
        arg_max(http_status, position) as http_status,
        max(position) filter (where event <> 'job.pruned') as position,
        arg_max(writer, position) filter (where event <> 'job.pruned') as writer,
        arg_max(seq, position) filter (where event <> 'job.pruned') as seq
    from events
    where event like 'job.%' and job_id in (select job_id from linked)
    group by job_id
),
jobs_of_keys as (
    select
        linked.n,
        jobs.job_id,
        jobs.topic,
        jobs.status as job_status,
        jobs.status in ('pending', 'leased') as is_open,
        jobs.attempt_count,
        jobs.error_type,
        jobs.last_error,
        jobs.created_at,
        jobs.updated_at,
        jobs.finished_at,
        jobs.next_attempt_at,
        jobs.locked_by,
        jobs.lease_token,
        jobs.position as enqueued_position,
        runs.* exclude (job_id),
        min(jobs.created_at) filter (where jobs.status in ('pending', 'leased')) over (partition by linked.n) as open_since
    from linked
    inner join jobs on jobs.job_id = linked.job_id
    inner join runs on runs.job_id = linked.job_id
    -- a job that a plan enqueued and its undo took back never was
    where not (jobs.status = 'cancelled' and coalesce(jobs.enqueued_from, '') like 'plan %')
),
last_jobs as (
    select *
    from jobs_of_keys
    qualify row_number() over (partition by n order by is_open desc, enqueued_position desc) = 1
),
histories as (
    select
        given.*,
        job.* exclude (n, position, writer, seq),
        change.entry_key,
        change.version,
        change.event = 'cache.put' as is_cached,
        change.event = 'cache.invalidated' and change.reason not like 'plan %' as is_forgotten,
        change.reason like 'plan %' and change.reason not like '% undone' as is_taken_out,
        coalesce(change.pending, false) as pending,
        change.origin,
        change.occurred_at as changed_at,
        change.job_id is not distinct from job.job_id as is_change_of_job,
        coalesce(change.origin = 'local' and change.job_id is null
            and change.position > coalesce(job.position, -1), false) as is_changed_since,
        greatest(change.occurred_at, job.updated_at) as moved_at,
        case when coalesce(change.position, -1) > coalesce(job.position, -1)
            then cast(change.writer as varchar) || ':' || change.seq
            else cast(job.writer as varchar) || ':' || job.seq
        end as place,
        coalesce(change.version > $cover_version, false)
            or coalesce(greatest(change.position, job.position) > $cover_position, false)
            or coalesce(greatest(change.occurred_at, job.updated_at) > $cover_at::timestamptz, false) as is_after_cover
    from given
    left join last_jobs as job on job.n = given.n
    left join last_changes as change on change.n = given.n
),
flights as (
    select
        *,
        case
            when is_open then open_since
            when is_after_cover then moved_at
            when pending and job_id is null then changed_at
        end as flying_since
    from histories
),
judged as (
    select
        *,
        case
            when flying_since > $at::timestamptz - to_microseconds($most_us) then 'in_flight'
            when is_open then 'overdue'
            when is_after_cover then 'after_export'
            when job_status in ('dead', 'cancelled') then job_status
            when difference = 'only_local' and $is_cut then 'unexplained'
            when difference = 'only_local' and (job_status = 'done' or origin = 'cloud') then 'removed_in_cloud'
            when difference = 'only_cloud' and is_forgotten then 'removed_here'
            when difference = 'only_cloud' and is_taken_out then 'added_in_cloud'
            when difference = 'only_cloud' and job_status = 'done' then 'not_cached'
            when difference = 'differs' and is_changed_since and (job_status = 'done' or $is_whole) then 'never_enqueued'
            when difference = 'differs' and job_status = 'done' and answers_lost > 0 and not replayed then 'applied_twice'
            when difference = 'differs' and (job_status = 'done' or origin = 'cloud') then 'changed_in_cloud'
            when not $is_whole then 'unexplained'
            when difference = 'only_cloud' and not coalesce(is_cached, false) then 'added_in_cloud'
            when difference = 'only_local' and (is_cached or not $is_cache) then 'never_enqueued'
            when difference = 'differs' and not $is_cache then 'never_enqueued'
            else 'unexplained'
        end as cause,
        concat_ws(' ', error_type, case when error_type not like 'HTTP%' then 'HTTP ' || http_status end, last_error) as failure,
        case when attempt_count = 1 then '1 attempt' else attempt_count || ' attempts' end as attempts
    from flights
),
worded as (
    select
        *,
        case
            when is_open and job_status = 'leased' then 'running at ' || locked_by
            when is_open and next_attempt_at > $at::timestamptz and attempt_count > 0
                then 'retry due in ' || lasting((epoch_us(next_attempt_at) - epoch_us($at::timestamptz)) / 1000000.0)
                    || ' after ' || attempts || ': ' || failure
            when is_open and next_attempt_at > $at::timestamptz
                then 'due in ' || lasting((epoch_us(next_attempt_at) - epoch_us($at::timestamptz)) / 1000000.0)
            when is_open and attempt_count > 0 then 'retry is due after ' || attempts || ': ' || failure
            when is_open then 'waits for a worker'
            when is_after_cover then 'changed here at ' || clock_text(moved_at) || ', after what the export covers'
            when cause = 'in_flight' then 'marked pending at ' || clock_text(changed_at)
            when cause = 'dead' then 'dead since ' || clock_text(finished_at) || ' after ' || attempts || ': ' || failure
                || case when answers_lost > 0 then '; an answer was lost: the cloud may have applied it' else '' end
            when cause = 'cancelled' then 'its job was cancelled at ' || clock_text(finished_at)
            when cause = 'never_enqueued' and changed_at is not null
                then 'changed here at ' || clock_text(changed_at) || case when job_id is null then ', and no job was enqueued for it'
                    else ', after its last job: no job was enqueued for that' end
            when cause = 'never_enqueued' then 'no job was enqueued for it'
            when cause = 'applied_twice'
                then 'delivered at ' || clock_text(finished_at) || ' after a lost answer that the cloud did not replay: applied twice'
            when cause = 'changed_in_cloud' and job_status = 'done'
                then 'delivered at ' || clock_text(finished_at) || ', then changed in the cloud only'
            when cause = 'changed_in_cloud' then 'as it came from the cloud at ' || clock_text(changed_at) || '; changed there since'
            when cause = 'removed_in_cloud' and job_status = 'done'
                then 'delivered at ' || clock_text(finished_at) || ', then removed in the cloud'
            when cause = 'removed_in_cloud' then 'as it came from the cloud at ' || clock_text(changed_at) || '; removed there since'
            when cause = 'added_in_cloud' and is_taken_out
                then 'taken out here by a plan at ' || clock_text(changed_at) || '; added in the cloud since'
            when cause = 'added_in_cloud' then 'never enqueued and never cached here: added in the cloud'
            when cause = 'removed_here' then 'forgotten here at ' || clock_text(changed_at)
            when cause = 'not_cached' then 'delivered at ' || clock_text(finished_at) || ' and not cached here'
            when difference = 'only_local' and $is_cut then 'rows of the export cannot be read: it may be among them'
            when not $is_whole then 'the log has no cause for it, and it is not whole'
            else 'the log has no cause for it'
        end
        || case when cause = 'overdue' then '; waiting since ' || clock_text(flying_since) else '' end as told
    from judged
)
select
    difference,
    key,
    cause,
    told,
    entry_key,
    version,
    coalesce(is_cached, false) as is_cached,
    job_id,
    topic,
    job_status,
    lease_token,
    is_changed_since,
    attempt_count,
    error_type,
    last_error,
    http_status,
    coalesce(moved_at, changed_at, updated_at) as moved_at,
    next_attempt_at,
    flying_since,
    place
from worded
order by n
