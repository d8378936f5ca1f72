-- one row a segment: its rows in `lines`, and how many of them fit
select
    segment,
    count(*) as rows_read,
    count(*) filter (where fits) as rows_fitting
from lines
group by segment
