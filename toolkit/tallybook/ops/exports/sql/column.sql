-- grain: one row: how the cells of the view cells (n, cell) are written
with filled as (
    select n, cell from cells where cell is not null and cell <> '' and not list_contains($words, cell)
),
shapes as (
    select
        n,
        cell,
        case
            when regexp_full_match(cell, '[+-]?(0|[1-9][0-9]*)') then 'integer'
            when regexp_full_match(cell, '0[0-9]+') then 'zeros'
            when regexp_full_match(cell, '[+-]?(0|[1-9][0-9]*)\.[0-9]+') then 'decimal'
            when regexp_full_match(cell, '[+-]?[0-9]{1,3}(\.[0-9]{3})+,[0-9]+|[+-]?[0-9]+,[0-9]{1,2}') then 'comma'
            when regexp_full_match(cell, '[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?') then 'grouped'
            when regexp_full_match(cell, '[+-]?[0-9](\.[0-9]+)?E\+[0-9]{2}') then 'damaged'
            when timestamp_text(cell) is not null then case when length(cell) = 10 then 'date' else 'timestamp' end
            when regexp_full_match(cell, '[0-9]{1,2}([/.-])[0-9]{1,2}[/.-][0-9]{4}') then 'slashed'
            when lower(cell) in ('true', 'false', 't', 'f') then 'boolean'
            else 'text'
        end as shape
    from filled
)
select
    (select count(*) from cells) as cells,
    (select count(*) from cells where cell is null) as nulls,
    count(*) as filled,
    count(distinct cell) as different,
    histogram(shape) as shapes,
    max(case when shape in ('decimal', 'comma') then length(cell) - greatest(strpos(cell, '.'), strpos(cell, ',')) end) as scale,
    count(*) filter (shape = 'slashed' and try_cast(regexp_extract(cell, '^([0-9]+)', 1) as integer) > 12) as day_first,
    count(*) filter (
        shape = 'slashed' and try_cast(regexp_extract(cell, '^[0-9]+.([0-9]+)', 1) as integer) > 12
    ) as month_first,
    any_value(regexp_extract(cell, '^[0-9]+(.)', 1)) filter (shape = 'slashed') as mark,
    max(length(cell)) as longest,
    count(*) filter (shape = 'integer' and length(cell) >= 16) as long_numbers,
    count(*) filter (shape = 'integer' and length(cell) >= 16 and regexp_full_match(substr(cell, 16), '0+')) as rounded
from shapes
