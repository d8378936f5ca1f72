-- one row a window and group of the jobs enqueued in it; times in microseconds, percentiles by linear interpolation
with clock as (
    select max(occurred_at) as last_at
    from events
),
measured as (
    from measured_jobs($since, $until, $by, $starts, $ends, $grain_us)
),
cells as (
    select windows.window_start, windows.window_end, names."group"
    from windows_of($starts, $ends, $covered) as windows
    cross join (select '' as "group" where $by = '' union select "group" from measured) as names
)
select
    cells.*,
    (epoch_us(clock.last_at) - epoch_us(measured.oldest_due_at)) / 1000000.0 as open_oldest_s,
    measured.* exclude (window_start, "group")
from cells
cross join clock
left join measured on measured.window_start = cells.window_start and measured."group" = cells."group"
order by cells.window_start, cells."group"
