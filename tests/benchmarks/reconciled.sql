-- name: made
-- one row of a table of ten columns, as text; $rows of them
select
    printf('id%09d', i) as id,
    'name ' || (hash(i) % 100000) as name,
    cast(hash(i + 1) % 1000000 as varchar) as quantity,
    printf('%d.%02d', hash(i + 2) % 100000, hash(i + 3) % 100) as price,
    strftime(timestamp '2026-01-01' + to_seconds(cast(hash(i + 4) % 30000000 as bigint)), '%Y-%m-%dT%H:%M:%SZ') as changed_at,
    case when hash(i + 5) % 20 = 0 then null else 'city ' || (hash(i + 5) % 5000) end as city,
    cast(hash(i + 6) % 2 = 0 as varchar) as flag,
    lower(hex(hash(i + 7))) as code,
    'note ' || hash(i + 8) as note,
    cast(hash(i + 9) % 100 as varchar) as score
from range($rows) as numbers(i)

-- name: edited
-- the same with one row in a thousand changed twice, one dropped and one added
select * replace (
    case when hash(id || 'price') % 1000 = 0 then price || '1' else price end as price,
    case when hash(id || 'city') % 1000 = 0 then 'another' else city end as city
)
from made where hash(id || 'dropped') % 1000 <> 0
union all
select * replace ('new' || id as id) from made where hash(id || 'new') % 1000 = 0

-- name: parquet
select * from read_parquet(getvariable('{side}'))

-- name: csv
select * from read_csv(
    getvariable('{side}'), columns = {
        'id': 'varchar', 'name': 'varchar', 'quantity': 'varchar', 'price': 'varchar',
        'changed_at': 'varchar', 'city': 'varchar', 'flag': 'varchar', 'code': 'varchar',
        'note': 'varchar', 'score': 'varchar'
    },
    delim = ',', header = true, auto_detect = false, quote = '"', escape = '"', nullstr = '',
    allow_quoted_nulls = false
)

-- name: typed
-- text first, then typed by rule, and a cell that has no value of its type is bad
create view typed_{side} as
select
    *,
    (quantity is null and quantity_text is not null) or (price is null and price_text is not null)
    or (changed_at is null and changed_at_text is not null) or (score is null and score_text is not null) as bad
from (
    select
        id, name, city, flag, code, note,
        quantity as quantity_text, price as price_text, changed_at as changed_at_text, score as score_text,
        case when regexp_full_match(quantity, '[+-]?[0-9]+') then try_cast(quantity as hugeint) end as quantity,
        case when regexp_full_match(price, '[+-]?[0-9]+(\.[0-9]+)?') then try_cast(price as decimal(38, 9)) end as price,
        case when regexp_full_match(changed_at, '[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})')
            then try_cast(changed_at as timestamptz) end as changed_at,
        case when regexp_full_match(score, '[+-]?[0-9]+') then try_cast(score as hugeint) end as score
    from {side}_rows
)
where id is not null

-- name: compared
-- rows and changed cells by status: a full join, with duplicates and null keys right
with twice as (
    select id from (select id from typed_one group by id having count(*) > 1)
    union
    select id from (select id from typed_other group by id having count(*) > 1)
),
joined as (
    select
        coalesce(l.id, r.id) as id, l.id is not null as in_left, r.id is not null as in_right,
        coalesce(l.bad, false) or coalesce(r.bad, false) as bad,
        l.name is distinct from r.name as name, l.quantity is distinct from r.quantity as quantity,
        l.price is distinct from r.price as price, l.changed_at is distinct from r.changed_at as changed_at,
        l.city is distinct from r.city as city, l.flag is distinct from r.flag as flag,
        l.code is distinct from r.code as code, l.note is distinct from r.note as note,
        l.score is distinct from r.score as score
    from typed_one as l full join typed_other as r on l.id = r.id
),
judged as (
    select
        *,
        case
            when id in (select id from twice) then 'duplicate'
            when bad then 'unreadable'
            when not in_right then 'only_left'
            when not in_left then 'only_right'
            when name or quantity or price or changed_at or city or flag or code or note or score then 'differs'
            else 'match'
        end as status
    from joined
)
select
    status, count(*) as rows, count(*) filter (name), count(*) filter (quantity), count(*) filter (price),
    count(*) filter (changed_at), count(*) filter (city), count(*) filter (flag), count(*) filter (code),
    count(*) filter (note), count(*) filter (score)
from judged
group by status
union all
select 'null_key', count(*), 0, 0, 0, 0, 0, 0, 0, 0, 0 from one_rows where id is null
union all
select 'null_key', count(*), 0, 0, 0, 0, 0, 0, 0, 0, 0 from other_rows where id is null
