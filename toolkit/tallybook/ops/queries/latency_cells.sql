-- one row a window of arrival and band of total time with jobs in it, eight bands a power of ten from 1 ms;
-- a window without any has one row, band null
with windows as (
    select
        unnest($starts::timestamptz[]) as window_start,
        unnest($ends::timestamptz[]) as window_end
),
banded as (
    select
        windows.window_start,
        windows.window_end,
        case when jobs.total_s is not null then floor(8 * log10(greatest(jobs.total_s, 0.001))) end as band
    from windows
    left join jobs on jobs.created_at >= windows.window_start and jobs.created_at < windows.window_end
        and jobs.total_s is not null
)
select
    window_start,
    window_end,
    pow(10, band / 8) as from_s,
    pow(10, (band + 1) / 8) as to_s,
    count(band) as jobs
from banded
group by window_start, window_end, band
order by window_start, band
