-- keep one line of each (writer, seq); a copied segment brings the others
delete from lines
where rowid in (
    select lines.rowid
    from lines
    inner join segments on segments.segment = lines.segment
    qualify row_number() over (partition by segments.writer, lines.seq order by lines.segment, lines.rowid) > 1
)
