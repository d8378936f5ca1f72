-- macros that give a cell in standard notation its value; null where it has none of that type
create or replace macro number_shape(cell) as
    regexp_full_match(cell, '[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)');

-- how many digits of a decimal stand after its point
create or replace macro scale_of(number) as
    case when contains(number, '.') then length(number) - strpos(number, '.') else 0 end;

create or replace macro instant(moment) as make_timestamptz(epoch_us(moment));

-- first the plain cells: DuckDB makes a value of them, and they are written as it would write it, or nearly so
create or replace macro plain_integer(cell, value) as case when cast(value as varchar) = cell then value end;

create or replace macro plain_decimal(cell, value, scale) as
    case
        when cast(value as varchar) = cell then value
        when number_shape(cell) and scale_of(cell) <= scale then value
    end;

create or replace macro plain_timestamp(cell, value) as
    case
        when cast(value as varchar) = cell then instant(value)
        when cast(value as varchar) = replace(rtrim(cell, 'Z'), 'T', ' ')
            and (length(cell) - length(rtrim(cell, 'Z'))) <= 1
            then instant(value)
    end;

create or replace macro plain_date(cell, value) as
    case when cell not in ('infinity', '-infinity') and cast(value as varchar) = cell then value end;

create or replace macro boolean_cell(cell) as
    case
        when cell = 'true' then true
        when cell = 'false' then false
        when lower(cell) in ('true', 't', '1') then true
        when lower(cell) in ('false', 'f', '0') then false
    end;

-- the others by the text of their value, where the type has room for it
create or replace macro decimal_digits(cell) as decimal_text(cell);

create or replace macro integer_digits(cell) as case when length(cell) <= 400 then decimal_text(cell) end;

create or replace macro spelled_number(spelled, scale) as case when scale_of(spelled) <= scale then spelled end;

create or replace macro spelled_timestamp(spelled) as
    case when scale_of(rtrim(spelled, 'Z')) <= 6 then instant(try_cast(spelled as timestamp)) end;

create or replace macro spelled_date(spelled) as
    case
        when regexp_full_match(spelled, '[0-9-]{10}T00:00:00Z') then try_cast(left(spelled, 10) as date)
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

-- seconds, milliseconds or microseconds since 1970; one that no time has room for is none
create or replace macro epoch_time(cell, per_second) as
    coalesce(
        strftime(
            try(make_timestamp(cast(
                try_cast(case when number_shape(cell) then cell end as decimal(38, 6)) * 1000000 / per_second as bigint
            ))),
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
