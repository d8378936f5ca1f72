-- the macros of typing.sql for cells that were read with their kind declared, so that each fits
create or replace macro whole(cell) as cell;

create or replace macro number(cell) as cell;

create or replace macro flag(cell) as cell;

create or replace macro moment(cell) as make_timestamptz(epoch_us(cell));
