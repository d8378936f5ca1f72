-- macros that type one cell of a log line; a number arrives as its JSON text, and what does not fit fails the read
create or replace macro whole(cell) as
    case
        when contains(cast(cell as varchar), '.') then error('a fraction where a whole number must be')
        else cast(cast(cell as varchar) as bigint)
    end;

create or replace macro number(cell) as
    case
        when not isfinite(cast(cast(cell as varchar) as double)) then error('a number that is none')
        else cast(cast(cell as varchar) as double)
    end;

create or replace macro flag(cell) as
    case
        when cell is null then null
        when cast(cell as varchar) = 'true' then true
        when cast(cell as varchar) = 'false' then false
        else error('a flag that is none')
    end;

create or replace macro moment(cell) as
    case
        when cell like '____-__-__T__:__:__%Z' and length(cell) <= 27 and cell > '0001'
            and substr(cell, 12, 2) <> '24' and not contains(cell, ' ') and not contains(cell, '.Z')
            then make_timestamptz(epoch_us(cast(cell as timestamp)))
        when cell is not null then error('a time that is none')
    end;
