-- one row a line of the log, where nothing is read from an archive
select * from lines
