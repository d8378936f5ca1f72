-- name: made
-- one row of an export of ten columns; $rows of them
select
    range as id,
    'u' || lpad(cast(range * 7919 % 1000003 as varchar), 9, '0') as code,
    cast((range * 31 % 100000) / 100.0 as decimal(18, 2)) as price,
    cast(hash(range) % 1000000007 as bigint) as quantity,
    'name of row ' || range as name,
    timestamp '2024-01-01' + to_seconds(range % 30000000) as made_at,
    date '2020-01-01' + cast(range % 2000 as integer) as day,
    range % 3 = 0 as ok,
    case when range % 10 > 0 then 'note ' || (range % 97) end as note,
    cast((range % 1000) * 1.25 as decimal(18, 2)) as rate
from range($rows)

-- name: declared
-- the same read by DuckDB with declared types
create table declared as
from read_csv(
    $path,
    header = true, auto_detect = false, delim = ',', quote = '"', escape = '"',
    nullstr = '', allow_quoted_nulls = false,
    columns = {
        id: 'BIGINT', code: 'VARCHAR', price: 'DECIMAL(18,2)', quantity: 'BIGINT', name: 'VARCHAR',
        made_at: 'TIMESTAMP', day: 'DATE', ok: 'BOOLEAN', note: 'VARCHAR', rate: 'DECIMAL(18,2)'
    }
)
