-- macro: a cell of a time, where no word stands for an absent one
create or replace macro given(cell) as cell;
