-- one row a job, where every row of the files is one; `seq` is the row of the files, from 1
create or replace view told as
select rows.rowid + 1 as seq, rows.*, words.status
from rows
left join words on words.word = rows.word
