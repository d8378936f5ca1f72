-- one row a line of the logs of nodes, in `lines` or in their archives, and an event of imported ones
select * from lines
union all by name
select * from archived_rows()
union all by name
select * from imported_rows()
