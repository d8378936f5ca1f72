"""The cache: the last known value of each key. A fold of ``cache.put`` and ``cache.invalidated``.

A backend holds rows; what an event does to an entry is ``tallybook.entry.after``. ``contract``
says what a backend must do, ``sqlite`` is the default one, its statements are in ``cache.sql``;
``json_file`` holds all in memory and flushes it whole.
"""
