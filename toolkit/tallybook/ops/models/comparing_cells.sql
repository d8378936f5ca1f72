-- macros on cells that are typed already: when two values count as equal
create or replace macro trimmed_text(cell) as
    regexp_replace(cell, '^[\s\p{Z}]+|[\s\p{Z}]+$', '', 'g');

create or replace macro collapsed_text(cell) as
    regexp_replace(trimmed_text(cell), '[\s\p{Z}]+', ' ', 'g');

-- the quick road first: most cells are written as their value is
create or replace macro quick_integer(cell) as
    case when try_cast(cell as bigint)::varchar = cell then cell else integer_text(cell) end;

create or replace macro quick_decimal(cell) as
    case
        when regexp_full_match(cell, '-?[1-9][0-9]*(\.[0-9]*[1-9])?|0|-?0\.[0-9]*[1-9]') then cell
        when regexp_full_match(cell, '-?[1-9][0-9]*\.[0-9]+') then rtrim(rtrim(cell, '0'), '.')
        else decimal_text(cell)
    end;

-- DuckDB takes fewer digits and blanks at both ends; with 20 letters from a digit to the Z there is room for neither
create or replace macro quick_timestamp(cell) as
    case
        when strlen(cell) = 20 and cell >= '0' and suffix(cell, 'Z')
            and try_strptime(cell, '%Y-%m-%dT%H:%M:%SZ') is not null then cell
        else timestamp_text(cell)
    end;

-- a time without an offset is one of the clock of that zone
create or replace macro zoned_timestamp(cell, zone) as
    case
        when regexp_matches(cell, '(Z|UTC|:[0-9.,]+ ?[+-][0-9]{2}(:?[0-9]{2})?)$') then quick_timestamp(cell)
        else
            strftime(
                timezone('UTC', timezone(zone, try_cast(substr(timestamp_text(cell), 1, 19) as timestamp))),
                '%Y-%m-%dT%H:%M:%S'
            )
            || substr(timestamp_text(cell), 20)
    end;

-- so many digits of a second
create or replace macro cut_timestamp(value, digits) as
    substr(value, 1, 19)
    || case
        when rtrim(substr(rtrim(value, 'Z'), 21, digits), '0') = '' then ''
        else '.' || rtrim(substr(rtrim(value, 'Z'), 21, digits), '0')
    end
    || 'Z';

-- the two halves of a number, each with its sign
create or replace macro whole_part(value) as try_cast(split_part(value, '.', 1) as decimal(37, 0));

create or replace macro fraction_part(value) as
    case when length(split_part(value, '.', 2)) <= 30 then
        cast(case when value[1] = '-' then '-0.' else '0.' end || split_part(value, '.', 2) || '0' as decimal(38, 30))
    end;

-- exact where it is below a million and 37 digits hold the wholes, 30 the fractions; else null
create or replace macro exact_gap(one, other) as
    case when abs(whole_part(one) - whole_part(other)) < 1000000 then
        abs(
            cast(whole_part(one) - whole_part(other) as decimal(38, 30))
            + (fraction_part(one) - fraction_part(other))
        )
    end;

create or replace macro number_gap(one, other) as
    coalesce(
        cast(exact_gap(one, other) as double),
        abs(cast(one as double) - cast(other as double))
    );

create or replace macro gap_within(one, other, tolerance) as
    coalesce(
        exact_gap(one, other) <= try_cast(tolerance as decimal(38, 30)),
        number_gap(one, other) <= cast(tolerance as double)
    );

create or replace macro part_within(one, other, part) as
    number_gap(one, other) <= part * greatest(abs(cast(one as double)), abs(cast(other as double)));

-- seconds since a time before every year that can be written, as a number
create or replace macro seconds_text(value) as
    cast(cast(epoch(try_cast(substr(value, 1, 19) as timestamp)) as bigint) + 99999999999 as varchar)
    || rtrim(substr(value, 20), 'Z');
