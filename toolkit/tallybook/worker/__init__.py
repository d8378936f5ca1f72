"""The worker: runs handlers on jobs, keeps their leases, says what it did.

A worker is one process with some threads. Each thread claims one job, runs its handler and settles
it. One more thread beats: it extends the leases of running jobs at a third of their time, rescues
jobs whose worker went silent, writes the heartbeat file and the metrics. It has a connection of
its own, so a handler that holds the book's lock for long cannot stop it.

``handlers`` is the register, ``run`` is one run of a handler, ``loop`` the worker, ``beat`` its
heartbeat, ``metrics`` its figures.
"""
