-- one row a column of a model, in their order
select table_name as model, column_name as "column", data_type as kind
from information_schema.columns
where table_schema = 'main' and table_name in ('events', 'jobs', 'leases', 'cache_history', 'topics', 'metrics', 'segments')
order by table_name, ordinal_position
