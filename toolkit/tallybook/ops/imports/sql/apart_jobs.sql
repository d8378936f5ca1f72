-- rows with a word that the profile does not know, or that has ended and says not how
insert into apart
select rows.rowid, case
    when rows.word is null then 'status: the row has none'
    else 'status: unknown word ' || rows.word
end
from rows
left join words on words.word is not distinct from rows.word
where rows.kept and rows.bad is null and getvariable('has_words') and words.status is null
    and (rows.word is not null or rows.end_us is not null)
