-- macro: the microseconds since 1970 of a number of units, counted from the origin of the file
create or replace macro instant(cell) as
    counted_us(cell, getvariable('time_unit_us')) + getvariable('origin_us');
