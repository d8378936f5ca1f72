-- one row a line of the logs of nodes and an event of imported ones
select * from lines
union all by name
select * from imported_rows()
