-- rows of an event with no id, no time, or a word that the profile does not know
insert into apart
select rows.rowid, case
    when rows.word is null then 'event: the row has none'
    when words.status is null then 'event: unknown word ' || rows.word
    when rows.id is null then 'id: the row has none'
    else 'at: the row has none'
end
from rows
left join words on words.word = rows.word
where rows.kept and rows.bad is null
    and (words.status is null or words.status <> 'ignore' and (rows.id is null or rows.at_us is null))
