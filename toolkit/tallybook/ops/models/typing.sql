-- macros that type one cell of a log line; null where the cell does not fit
create or replace macro whole(cell) as
    case when json_type(cell) in ('UBIGINT', 'BIGINT') then try_cast(cell as bigint) end;

create or replace macro number(cell) as
    case
        when json_type(cell) in ('UBIGINT', 'BIGINT', 'DOUBLE') and isfinite(try_cast(cell as double))
            then try_cast(cell as double)
    end;

create or replace macro flag(cell) as
    case when json_type(cell) = 'BOOLEAN' then try_cast(cell as boolean) end;

create or replace macro moment(cell) as
    try_strptime(cell, ['%Y-%m-%dT%H:%M:%S.%fZ', '%Y-%m-%dT%H:%M:%SZ']) at time zone 'UTC';
