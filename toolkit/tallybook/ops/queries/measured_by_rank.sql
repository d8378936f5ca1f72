-- one row a window and group, as `measured_at_once` gives it, by a plan that holds no list of values in memory: the
-- values are counted in bands, and only the bands that hold a wanted rank are counted value by value
create or replace temp macro measured_jobs(since, until, by_what, starts, ends, grain_us) as table
    with timed as materialized (
        select grains.window_start, jobs."group", jobs.state, jobs.due_at, jobs.wait_us, jobs.run_us, jobs.total_us
        from timed_jobs(since, until, by_what) as jobs
        inner join grains_of(starts, ends, grain_us) as grains
            on grains.grain = grain_of(jobs.created_at, starts, grain_us)
    ),
    long as (
        select window_start, "group", 1 as measure, wait_us as value, band_of(wait_us) as band from timed
        union all
        select window_start, "group", 2 as measure, run_us as value, band_of(run_us) as band from timed
        union all
        select window_start, "group", 3 as measure, total_us as value, band_of(total_us) as band from timed
    ),
    banded as (
        select window_start, "group", measure, band, count(*) as n, sum(value) as amount, max(value) as highest,
            count(*) filter (where value < 0) as negative
        from long
        where value is not null
        group by window_start, "group", measure, band
    ),
    bands as (
        select
            *,
            sum(n) over (partition by window_start, "group", measure order by band) - n as ranks_before,
            sum(n) over (partition by window_start, "group", measure) as ranks
        from banded
    ),
    wanted as (
        select window_start, "group", measure, share, share * (ranks - 1) as rank
        from (select distinct window_start, "group", measure, ranks from bands)
        cross join (select unnest([0.5, 0.9, 0.95, 0.99]) as share)
    ),
    holding as (
        select distinct bands.window_start, bands."group", bands.measure, bands.band, bands.ranks_before
        from bands
        inner join wanted on wanted.window_start = bands.window_start and wanted."group" = bands."group"
            and wanted.measure = bands.measure
            and ceil(wanted.rank) >= bands.ranks_before and floor(wanted.rank) < bands.ranks_before + bands.n
    ),
    counted as (
        select long.window_start, long."group", long.measure, long.band, long.value, holding.ranks_before, count(*) as n
        from long
        inner join holding on holding.window_start = long.window_start and holding."group" = long."group"
            and holding.measure = long.measure and holding.band = long.band
        group by all
    ),
    ranked as (
        select
            *,
            ranks_before + sum(n) over (partition by window_start, "group", measure, band order by value) as ranks_upto
        from counted
    ),
    percentiles as (
        select
            wanted.window_start,
            wanted."group",
            wanted.measure,
            wanted.share,
            min(ranked.value) filter (where ranked.ranks_upto > floor(wanted.rank)) as below,
            min(ranked.value) filter (where ranked.ranks_upto > ceil(wanted.rank)) as above,
            wanted.rank - floor(wanted.rank) as part
        from wanted
        inner join ranked on ranked.window_start = wanted.window_start and ranked."group" = wanted."group"
            and ranked.measure = wanted.measure
        group by wanted.window_start, wanted."group", wanted.measure, wanted.share, wanted.rank
    ),
    listed as (
        select window_start, "group", measure,
            list(cast(below + (above - below) * part as double) order by share) as percentiles
        from percentiles
        group by window_start, "group", measure
    ),
    summed as (
        select
            bands.window_start,
            bands."group",
            bands.measure,
            any_value(listed.percentiles) as percentiles,
            cast(sum(bands.amount) as double) / sum(bands.n) as mean,
            max(bands.highest) as highest,
            cast(sum(bands.negative) as bigint) as negative
        from bands
        inner join listed on listed.window_start = bands.window_start and listed."group" = bands."group"
            and listed.measure = bands.measure
        group by bands.window_start, bands."group", bands.measure
    ),
    states as (
        select
            window_start,
            "group",
            count(*) filter (where state <> 'open') as n,
            count(*) filter (where state = 'open') as open,
            min(due_at) filter (where state = 'open') as oldest_due_at
        from timed
        group by window_start, "group"
    )
    select
        states.*,
        waits.percentiles as wait,
        waits.mean as wait_mean,
        waits.highest as wait_max,
        waits.negative as wait_negative,
        runs.percentiles as run,
        runs.mean as run_mean,
        runs.highest as run_max,
        runs.negative as run_negative,
        totals.percentiles as total,
        totals.mean as total_mean,
        totals.highest as total_max,
        totals.negative as total_negative
    from states
    left join summed as waits on waits.window_start = states.window_start and waits."group" = states."group"
        and waits.measure = 1
    left join summed as runs on runs.window_start = states.window_start and runs."group" = states."group"
        and runs.measure = 2
    left join summed as totals on totals.window_start = states.window_start and totals."group" = states."group"
        and totals.measure = 3
