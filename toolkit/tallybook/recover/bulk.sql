-- name: changes
-- one row a key with the last change of it among the lines of one writer; `place` orders all lines
insert into changed
with changes as (
    select
        key,
        seq,
        event,
        occurred_at,
        coalesce(version, 1) as version,
        coalesce(origin, 'local') as origin,
        coalesce(cast(value as varchar), 'null') as value,
        case
            when
                base_version is not null or etag is not null or last_modified is not null
                or pending is not null or ttl_s is not null or depends_on is not null
                or value_schema is not null or synced_at is not null or job_id is not null
                then cast(to_json(struct_pack(
                    base_version := base_version,
                    etag := etag,
                    last_modified := last_modified,
                    pending := pending,
                    ttl_s := ttl_s,
                    depends_on := depends_on,
                    value_schema := value_schema,
                    synced_at := synced_at,
                    job_id := job_id,
                    boot_us := boot_us,
                    file := filename
                )) as varchar)
        end as rest
    from read_json(
        $files, columns = $columns, format = 'newline_delimited', auto_detect = false,
        filename = true, maximum_object_size = $line_limit
    )
    where event in ('cache.put', 'cache.invalidated')
        and ($as_of::varchar is null or occurred_at <= $as_of::varchar)
)
select
    key,
    $begin::bigint + max(seq) as place,
    arg_max(
        struct_pack(
            event := event, occurred_at := occurred_at, version := version, origin := origin,
            value := value, rest := rest
        ),
        seq
    ) as last
from changes
group by key

-- name: create
-- what `changes` fills
create table changed (
    key varchar,
    place bigint,
    last struct(
        event varchar, occurred_at varchar, version bigint, origin varchar, value varchar,
        rest varchar
    )
)

-- name: latest
-- one row a key that is cached: its last change over all writers is a put
create table cached as
select key, place, last
from changed
qualify row_number() over (partition by key order by place desc) = 1 and last.event = 'cache.put'

-- name: latest_of_one
-- as `latest`, where each key stands once already: nothing is copied
create view cached as
select key, place, last
from changed
where last.event = 'cache.put'

-- name: entries
-- the cached entries by key, by code point
select key, place, last.occurred_at, last.version, last.origin, last.value, last.rest
from cached
order by key

-- name: values
-- keys and values by key, by code point
select key, last.value
from cached
order by key

-- name: keys
-- the number of keys
select count(*)
from cached

-- name: unknown
-- the keys with no write behind a place
select key
from cached
where place <= $doubt
order by key

-- name: unsealed
-- the keys behind a place whose last write no hash covers
select cached.key
from cached
where cached.place > greatest($doubt, $begin)
    and not exists (
        select 1 from sealed where cached.place between sealed.first_place and sealed.last_place
    )
order by cached.key

-- name: export
-- one line an entry, by key
copy (
    select
        key,
        cast(last.value as json) as value,
        last.version as version,
        cast(json_extract(last.rest, '$.base_version') as bigint) as base_version,
        json_extract_string(last.rest, '$.etag') as etag,
        json_extract_string(last.rest, '$.last_modified') as last_modified,
        last.origin as origin,
        coalesce(cast(json_extract(last.rest, '$.pending') as boolean), false) as pending,
        cast(json_extract(last.rest, '$.ttl_s') as double) as ttl_s,
        coalesce(json_extract(last.rest, '$.depends_on'), cast('[]' as json)) as depends_on,
        json_extract_string(last.rest, '$.value_schema') as value_schema,
        json_extract_string(last.rest, '$.synced_at') as synced_at,
        json_extract_string(last.rest, '$.job_id') as job_id,
        last.occurred_at as updated_at
    from cached
    order by key
) to '{target}' (format {kind})
