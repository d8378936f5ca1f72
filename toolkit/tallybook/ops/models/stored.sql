-- one row a line of the log, in `lines` or in the Parquet files of the archive
select * from lines
union all by name
select * from read_parquet(getvariable('archive_files'))
