-- macros: numbers of units as microseconds, kept exactly; null for what is no number or out of all bounds
create or replace macro bounded_us(number_us) as
    case when number_us between -62135596800000000 and 253402300799999999 then cast(number_us as bigint) end;

create or replace macro counted_us(cell, unit_us) as
    case
        when unit_us >= 1 and not contains(cell, '.') then
            bounded_us(cast(try_cast(cell as bigint) as hugeint) * cast(unit_us as bigint))
        when unit_us >= 1 then
            bounded_us(round(try_cast(cell as decimal(28, 9)) * cast(unit_us as bigint), 0))
        else bounded_us(try_cast(cell as bigint) // 1000)
    end;
