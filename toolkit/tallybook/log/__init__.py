"""The log: the truth. Everything else in a book is a fold of it.

How it works:

- One folder, one lock (flock on the folder itself), one writer. Who holds the lock appends.
- A *writer* is one life of a log folder. ``writer.json`` names it, with the machine and the inode
  that it lived on: a copied folder is another life, so it gets a new writer.
- A *segment* is a file of whole lines, ``<writer8>-<first seq>.ndjson``. The last one is open and
  grows. A new boot, a new writer, a full or an old segment opens the next.
- A closed segment is compressed beside its work by whoever gets its own lock; a *manifest* proves
  the archive. Pruned segments leave an *anchor* that the chain goes on from.
- Each line continues a hash chain. The first line of a segment carries the hash so far, and
  state.db, checkpoints and metrics/latest.json carry the last one: an edit, a hole or a lost end
  is seen.
- An append is one write and one fdatasync. What a crash leaves half-written at the end was never
  acknowledged: it is cut before the next append.

``reader`` reads segments in the order of history, ``tail`` follows them, ``writer`` appends for
the life that ``identity`` names, ``lock`` guards, ``compress`` packs what is closed, ``verify``
checks, ``loss`` says what is gone, ``durable`` holds every sync, by name.
"""
