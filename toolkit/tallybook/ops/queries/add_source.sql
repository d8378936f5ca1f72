-- a file from which the segment $segment is read
insert into sources
select $file, segment, writer, boot_id, node_id, $base
from openings
where segment = $segment
