-- add the rows of the first parameter, lists of cells in the order of `metric_cells`
insert into metric_cells
select
    cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], cells[7], cells[8], cells[9],
    cells[10], cells[11], cells[12], cells[13], cells[14], cells[15], cells[16], cells[17],
    cells[18], cells[19], cells[20], cells[21], cells[22], cells[23], cells[24], cells[25],
    cells[26], cells[27], cells[28], cells[29]
from unnest($1::varchar[][]) as given (cells)
