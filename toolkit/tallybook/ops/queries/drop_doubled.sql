-- keep one line of each (writer, seq) of the writers in $1, that of the archive where it has one; a copied segment
-- brings the others; one row a line that went
delete from lines
where rowid in (
    select lines.rowid
    from lines
    where list_contains($1, cast(writer as varchar))
    qualify row_number() over (partition by writer, seq order by segment, rowid) > 1
    union
    select lines.rowid
    from lines
    inner join segments on segments.writer = cast(lines.writer as varchar)
    inner join archived on archived.segment = segments.segment
    where lines.seq between archived.first_seq and archived.last_seq
        and archived.numbers = archived.last_seq - archived.first_seq + 1
)
returning seq
