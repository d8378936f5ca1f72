-- macros that type one cell of a log line, and say whether it fits; a number arrives as its JSON text
create or replace macro whole(cell) as try_cast(cast(cell as varchar) as bigint);

create or replace macro whole_fits(cell) as
    cell is null
    or (try_cast(cast(cell as varchar) as bigint) is not null and not contains(cast(cell as varchar), '.'));

create or replace macro number(cell) as try_cast(cast(cell as varchar) as double);

create or replace macro number_fits(cell) as
    cell is null or coalesce(isfinite(try_cast(cast(cell as varchar) as double)), false);

create or replace macro flag(cell) as cast(cell as varchar) = 'true';

create or replace macro flag_fits(cell) as cell is null or cast(cell as varchar) in ('true', 'false');

create or replace macro moment(cell) as make_timestamptz(epoch_us(try_cast(cell as timestamp)));

create or replace macro moment_fits(cell) as
    cell is null
    or (
        try_cast(cell as timestamp) is not null
        and cell like '____-__-__T__:__:__%Z' and length(cell) <= 27 and cell > '0001'
        and substr(cell, 12, 2) <> '24' and not contains(cell, ' ') and not contains(cell, '.Z')
    );
