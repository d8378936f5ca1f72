-- macro: the microseconds since 1970 of an ISO 8601 cell; without an offset it is in the zone of the session
create or replace macro instant(cell) as
    case
        when cell >= '0' and cell < ':' and length(cell) >= 10
            then bounded_us(epoch_us(try_cast(cell as timestamptz)))
    end;
