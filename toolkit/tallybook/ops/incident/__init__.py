"""What happened in a part of a log, asked again and again while a person looks.

``Incident(warehouse, span)`` counts the span once into small tables, in at most some 600 grains of
time. From then on a question about a ``Slice`` of it reads those tables and no event, so that each
answers within a second, at a thousand jobs as at many millions:

    tables        the small tables, made in one pass of statements            tables.sql
    slices        what happened in a slice: latency, lanes, errors, leases    slices.sql
    differences   what differs in a slice from the rest, ranked               differences.sql
    moments       what stood at an instant: queue, leases, cache              moments.sql

One rule places things in time: what the log tells belongs to the grain in which it was written.
A lease belongs to the grain in which it ended (one that is open to the last), an arrival to that
in which the job was enqueued.
"""

from tallybook.ops.incident.slices import Incident, Slice

__all__ = ["Incident", "Slice"]
