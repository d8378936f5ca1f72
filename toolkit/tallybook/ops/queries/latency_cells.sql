-- one row a window of arrival and band of total time with jobs in it; four bands a power of ten, from 1 ms
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end
),
banded as (
    select
        windows.window_start,
        windows.window_end,
        floor(4 * log10(greatest(jobs.total_s, 0.001))) as band
    from windows
    inner join jobs on jobs.created_at >= windows.window_start and jobs.created_at < windows.window_end
    where jobs.total_s is not null
)
select
    window_start,
    window_end,
    pow(10, band / 4) as from_s,
    pow(10, (band + 1) / 4) as to_s,
    count(*) as jobs
from banded
group by window_start, window_end, band
order by window_start, band
