"""PostgreSQL's COPY in text format, alone or in the text of a pg_dump of one table.

https://www.postgresql.org/docs/current/sql-copy.html
"""

import re

from tallybook.ops.exports.layout import Head, Layout

_BEGINS = re.compile(r"(?im)^COPY [^;]+ FROM stdin(?: [^;]*)?;\s*$")


def _suits(head: Head) -> bool:
    return head.name.endswith(".copy") or bool(_BEGINS.search(head.text))


LAYOUT = Layout("postgresql-copy", "COPY in text format, or a pg_dump", "copy", _suits)
