-- macros that give a cell in standard notation its value; null where it has none of that type
create or replace macro number_shape(cell) as
    regexp_full_match(cell, '[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)');

create or replace macro integer_cell(cell) as
    case
        when cast(try_cast(cell as bigint) as varchar) = cell then try_cast(cell as bigint)
        when length(cell) <= 400 then try_cast(integer_text(cell) as bigint)
    end;

-- how many digits of a decimal stand after its point
create or replace macro scale_of(number) as
    case when contains(number, '.') then length(number) - strpos(number, '.') else 0 end;

create or replace macro instant(moment) as make_timestamptz(epoch_us(moment));

create or replace macro timestamp_cell(cell) as
    case
        when cast(try_cast(cell as timestamp) as varchar) = cell then instant(try_cast(cell as timestamp))
        when cast(try_cast(replace(rtrim(cell, 'Z'), 'T', ' ') as timestamp) as varchar)
            = replace(rtrim(cell, 'Z'), 'T', ' ')
            and (length(cell) - length(rtrim(cell, 'Z'))) <= 1
            then instant(try_cast(replace(rtrim(cell, 'Z'), 'T', ' ') as timestamp))
        when scale_of(rtrim(timestamp_text(cell), 'Z')) <= 6 then instant(try_cast(timestamp_text(cell) as timestamp))
    end;

create or replace macro date_cell(cell) as
    case
        when cell not in ('infinity', '-infinity') and cast(try_cast(cell as date) as varchar) = cell then try_cast(cell as date)
        when regexp_full_match(timestamp_text(cell), '[0-9-]{10}T00:00:00Z')
            then try_cast(left(timestamp_text(cell), 10) as date)
    end;

create or replace macro boolean_cell(cell) as
    case
        when lower(cell) in ('true', 't', '1') then true
        when lower(cell) in ('false', 'f', '0') then false
    end;

-- a number with other marks, in standard notation; as it is where it is no such number
create or replace macro marked_number(cell, shape, thousands, point) as
    case
        when regexp_full_match(cell, shape)
            then replace(case when thousands = '' then cell else replace(cell, thousands, '') end, point, '.')
        else 'no number: ' || cell
    end;

-- the instant of a time of a zone; null in the hour that a zone leaves out
create or replace macro in_zone(moment, zone) as
    case
        when zone = 'UTC' then moment
        when timezone(zone, timezone(zone, moment)) = moment then timezone('UTC', timezone(zone, moment))
    end;

create or replace macro marked_time(cell, format, zone) as
    coalesce(
        strftime(
            in_zone(case when ltrim(cell) = cell then try_strptime(cell, format) end, zone),
            '%Y-%m-%dT%H:%M:%S.%fZ'
        ),
        'no time: ' || cell
    );

-- seconds, milliseconds or microseconds since 1970
create or replace macro epoch_time(cell, per_second) as
    coalesce(
        strftime(
            make_timestamp(cast(
                try_cast(case when number_shape(cell) then cell end as decimal(38, 6)) * 1000000 / per_second as bigint
            )),
            '%Y-%m-%dT%H:%M:%S.%fZ'
        ),
        'no time: ' || cell
    );

-- a time without an offset of its own is one of the zone
create or replace macro zoned_time(cell, zone) as
    case
        when regexp_matches(cell, '(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)$') and contains(cell, ':') then cell
        when timestamp_text(cell) is null then cell
        else coalesce(
            strftime(
                in_zone(try_cast(rtrim(timestamp_text(cell), 'Z') as timestamp), zone),
                '%Y-%m-%dT%H:%M:%S.%fZ'
            ),
            'no time: ' || cell
        )
    end;
