-- one row a node: the segment that its log ends in
select segment
from segments
qualify row_number() over (partition by node_id order by ordinal desc, last_seq desc) = 1
