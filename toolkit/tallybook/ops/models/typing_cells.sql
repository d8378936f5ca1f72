-- macros that give a cell the text of its value, equal for equal values; null where it has no such value
create or replace macro trimmed_number(sign, whole, fraction) as
    case
        when ltrim(whole, '0') = '' and rtrim(fraction, '0') = '' then '0'
        else
            case when sign = '-' then '-' else '' end
            || case when ltrim(whole, '0') = '' then '0' else ltrim(whole, '0') end
            || case when rtrim(fraction, '0') = '' then '' else '.' || rtrim(fraction, '0') end
    end;

-- so many of the digits stand before the point; the lambdas name parts, which are planned once
create or replace macro pointed_number(sign, digits, point) as
    list_transform(
        [{
            'whole': case when point <= 0 then '' else rpad(substr(digits, 1, point), point, '0') end,
            'fraction': case when point < 0 then repeat('0', -point) || digits else substr(digits, point + 1) end
        }],
        lambda half: trimmed_number(sign, half.whole, half.fraction)
    )[1];

create or replace macro shifted_number(cell) as
    list_transform(
        list_transform(
            [regexp_extract(
                cell, '^([+-]?)([0-9]*)\.?([0-9]*)[eE]([+-]?[0-9]+)$', ['sign', 'whole', 'fraction', 'exponent']
            )],
            lambda part: {
                'sign': part.sign,
                'digits': part.whole || part.fraction,
                'point': cast(length(part.whole) + cast(part.exponent as integer) as integer)
            }
        ),
        lambda moved: pointed_number(moved.sign, moved.digits, moved.point)
    )[1];

create or replace macro decimal_text(cell) as
    case
        when regexp_full_match(cell, '[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)') then
            trimmed_number(
                regexp_extract(cell, '^[+-]'),
                regexp_extract(cell, '^[+-]?([0-9]*)', 1),
                regexp_extract(cell, '\.([0-9]*)$', 1)
            )
        when regexp_full_match(cell, '[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]{1,3}') then
            shifted_number(cell)
    end;

create or replace macro integer_text(cell) as
    case when not contains(decimal_text(cell), '.') then decimal_text(cell) end;

-- seconds of an offset like +02:00, -0530, +02 or Z; a time without one counts as UTC
create or replace macro offset_s(cell) as
    case
        when regexp_matches(cell, '[+-][0-9]{2}(:?[0-9]{2})?$') and regexp_matches(cell, '[T ][0-9]{2}:') then
            case when regexp_extract(cell, '([+-])[0-9]{2}(:?[0-9]{2})?$', 1) = '-' then -1 else 1 end
            * (
                3600 * cast(regexp_extract(cell, '[+-]([0-9]{2})(:?[0-9]{2})?$', 1) as integer)
                + 60 * coalesce(try_cast(nullif(
                    regexp_extract(cell, '[+-][0-9]{2}:?([0-9]{2})$', 1), '') as integer), 0)
            )
        else 0
    end;

create or replace macro timestamp_text(cell) as
    case
        when regexp_full_match(
            cell,
            '[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,18})?)?( ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?)?'
        ) then
            strftime(
                try_strptime(
                    rpad(replace(regexp_extract(cell, '^[0-9-]{10}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?'), 'T', ' ')
                        || case
                            when length(regexp_extract(cell, '^[0-9-]{10}([T ][0-9:]+)?')) <= 10 then ' 00:00:00'
                            when regexp_matches(cell, '^[0-9-]{10}[T ][0-9]{2}:[0-9]{2}:') then ''
                            else ':00'
                        end, 19, ' '),
                    '%Y-%m-%d %H:%M:%S'
                ) - to_seconds(offset_s(cell)),
                '%Y-%m-%dT%H:%M:%S'
            )
            || case
                when rtrim(regexp_extract(cell, '[.,]([0-9]+)', 1), '0') = '' then ''
                else '.' || rtrim(regexp_extract(cell, '[.,]([0-9]+)', 1), '0')
            end
            || 'Z'
    end;
