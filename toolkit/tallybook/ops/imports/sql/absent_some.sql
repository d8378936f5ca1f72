-- macro: a cell of a time, or null where it is a word for an absent one
create or replace macro given(cell) as
    case when not list_contains(getvariable('absent'), cell) then cell end;
