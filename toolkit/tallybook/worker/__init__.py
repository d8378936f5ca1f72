"""The worker: runs handlers on jobs, keeps their leases, says what it did.

A worker is one process with some threads. Each thread claims one job, runs its handler, settles it
and claims the next in the same change; where none is due it waits for news. One more thread beats:
it extends the leases of running jobs at a third of their time, rescues the jobs of workers that
died or went silent, writes the heartbeat file and the metrics. It has a connection of its own, so
a handler that holds the book's lock for long cannot stop it.

Life is a lock: the process holds flock on its heartbeat file, and the kernel frees it at death.
What passes by itself (a full disk, a log held by another) is waited for; nothing is claimed
meanwhile.

``handlers`` is the register, ``run`` is one run of a handler, ``loop`` the worker, ``options``
checks what it is given, ``lane`` the jobs of a thread, ``running`` the leases it holds, ``beat``
its heartbeat, ``sign`` the heartbeat file, ``wake`` how it waits for news, ``patience`` how it
waits for what passes, ``stopping`` how it and its runs end, ``parent`` what keeps several of them
running, ``notify`` what a service manager is told, ``metrics`` its figures.
"""
