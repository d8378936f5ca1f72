"""The queue: where jobs stand now. A fold of the log, kept so that a claim is quick.

A backend holds rows and answers questions; it has no rules. Who may claim, what a settle means
and when a job is dead is decided in ``tallybook.job``; what an event does to a row is
``tallybook.fold``. ``contract`` says what a backend must do, ``sqlite`` is the default one, its
statements are in ``queue.sql``; ``claiming`` knows which jobs come next without a scan.
"""
