-- take the segments named in the first parameter out of `lines` again
delete from lines
where list_contains($1, cast(segment as varchar))
