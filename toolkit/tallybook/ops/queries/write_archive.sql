-- the rows of a segment as the Parquet file $file, sorted for questions by event and by time
copy (
    select *
    from lines
    order by event, seq
) to $file (
    format parquet, compression zstd, compression_level 1, row_group_size 30000,
    -- a column of ids and times finds out at 500 values that a dictionary is no use to it, not at 6,000
    dictionary_size_limit 500
)
