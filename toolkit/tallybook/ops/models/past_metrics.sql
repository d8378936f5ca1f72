-- one row an interval and worker of the rolling metrics that had ended by the cut
select *
from main.metrics
where interval_ended_at <= getvariable('cut_until')
