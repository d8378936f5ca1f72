-- one row a job, where some rows of the files are none; `seq` is the row of the files, from 1
create or replace view told as
select rows.rowid + 1 as seq, rows.*, words.status
from rows
left join words on words.word = rows.word
where rows.kept
    and rows.rowid not in (select row from apart)
    and rows.rowid not in (select row from superseded)
