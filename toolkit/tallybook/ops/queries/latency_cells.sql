-- one row a window of arrival and band of total time with jobs in it, eight bands a power of ten from 1 ms;
-- a window without any has one row, band null
with banded as (
    select
        grain_of(created_at, $starts, $grain_us) as grain,
        floor(8 * log10(greatest(total_us, 1000) / 1000000.0)) as band,
        count(*) as jobs
    from timed_jobs($since, $until, '')
    where total_us is not null
    group by 1, 2
),
summed as (
    select grains.window_start, banded.band, sum(banded.jobs) as jobs
    from banded
    inner join grains_of($starts, $ends, $grain_us) as grains on grains.grain = banded.grain
    group by grains.window_start, banded.band
)
select
    windows.window_start,
    windows.window_end,
    pow(10, summed.band / 8) as from_s,
    pow(10, (summed.band + 1) / 8) as to_s,
    cast(coalesce(summed.jobs, 0) as bigint) as jobs
from windows_of($starts, $ends, $covered) as windows
left join summed on summed.window_start = windows.window_start
order by windows.window_start, summed.band
