-- macro: the microseconds since 1970 of a cell in the wanted format, in the zone of the session
create or replace macro instant(cell) as
    bounded_us(epoch_us(cast(
        try_strptime(getvariable('time_prefix') || cell, getvariable('time_format')) as timestamptz
    )));
