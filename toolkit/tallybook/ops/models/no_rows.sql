-- no row: what a fleet has none of
select * from lines where false
