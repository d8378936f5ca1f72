-- macros of the questions by window: the windows, the grains they are made of, and the times of each job
create or replace temp macro windows_of(starts, ends, covered) as table
    select
        unnest(starts::timestamptz[]) as window_start,
        unnest(ends::timestamptz[]) as window_end,
        unnest(covered::double[]) as covered_s;

-- the number of the grain that a moment lies in, counted from the first window
create or replace temp macro grain_of(moment, starts, grain_us) as
    (epoch_us(moment) - epoch_us((starts::timestamptz[])[1])) // grain_us;

-- one row a grain of a window
create or replace temp macro grains_of(starts, ends, grain_us) as table
    select
        window_start,
        unnest(range(grain_of(window_start, starts, grain_us), grain_of(window_end, starts, grain_us))) as grain
    from (select unnest(starts::timestamptz[]) as window_start, unnest(ends::timestamptz[]) as window_end);

-- one row a job that was enqueued between since and until, in one pass over the events: wait from due to the first
-- start, run of the last attempt, total from due to the end; in microseconds, null where it is not known (yet)
create or replace temp macro timed_jobs(since, until, by_what) as table
    with steps as (
        select
            job_id,
            position,
            occurred_at,
            case when reason is distinct from 'submit_unknown' then coalesce(next_attempt_at, occurred_at) end as due_at,
            topic,
            started_at,
            duration_ms,
            case by_what when 'worker' then worker when 'error' then error_type when 'node' then node_id end as named,
            case event
                when 'job.enqueued' then 1
                when 'job.done' then 2
                when 'job.dead' then 2
                when 'job.cancelled' then 3
                when 'job.discarded' then 3
                when 'job.settle_refused' then 4
                when 'job.extended' then 4
                else 5
            end as kind
        from events
        where event in ('job.enqueued', 'job.extended', 'job.done', 'job.retry_scheduled', 'job.dead', 'job.snoozed',
                        'job.requeued', 'job.cancelled', 'job.discarded', 'job.settle_refused')
            or (event = 'job.leased' and (by_what = 'worker' or started_at is not null))
    ),
    folded as (
        select
            job_id,
            min(occurred_at) filter (where kind = 1) as created_at,
            min(due_at) filter (where kind = 1) as due_at,
            any_value(topic) filter (where kind = 1) as topic,
            arg_max(named, position) filter (where kind <> 4) as named,
            min(started_at) as first_started_at,
            max(occurred_at) filter (where kind = 2) as ended_at,
            arg_max_null(duration_ms, position) filter (where kind = 2) as duration_ms,
            max(position * 8 + kind) filter (where kind <> 4) % 8 as last_kind
        from steps
        group by job_id
    ),
    stated as (
        select
            *,
            case last_kind when 2 then 'ended' when 3 then 'cancelled' else 'open' end as state
        from folded
    )
    select
        created_at,
        due_at,
        case by_what
            when 'topic' then topic
            when 'worker' then coalesce(named, '(never claimed)')
            when 'error' then coalesce(named, '(none)')
            when 'node' then named
            else ''
        end as "group",
        state,
        epoch_us(first_started_at) - epoch_us(due_at) as wait_us,
        case when state = 'ended' then cast(round(duration_ms * 1000) as bigint) end as run_us,
        case when state = 'ended' then epoch_us(ended_at) - epoch_us(due_at) end as total_us
    from stated
    where created_at >= since::timestamptz and created_at < until::timestamptz;

-- a band of a time in microseconds: 32 to a doubling, those of no time or less in one
create or replace temp macro band_of(value) as
    case when value <= 0 then -1 else cast(floor(log2(value) * 32) as integer) end;
