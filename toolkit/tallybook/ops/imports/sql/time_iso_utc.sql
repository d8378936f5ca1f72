-- macro: the microseconds since 1970 of an ISO 8601 cell; without an offset it is in UTC; 19 characters have none
create or replace macro instant(cell) as
    case
        when cell < '0' or cell >= ':' or length(cell) < 10 then null
        when length(cell) = 19 and substr(cell, 17, 1) = ':' then
            bounded_us(epoch_us(try_cast(cell as timestamp)))
        else bounded_us(epoch_us(try_cast(cell as timestamptz)))
    end;
