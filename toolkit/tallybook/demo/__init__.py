"""The demo: the main job on real input, with planted faults that the runbooks must find.

    faults      which fault a request meets, and what is tampered with: pure, by seed
    airports    the records: real airports from the package airportsdata
    cloud       a process: HTTP on loopback, SQLite inside (store), the injector at its door
    handlers    what a worker process runs: deliver, then write the cache; two of them are victims
    children    the processes that the demo started; none outlives it
    killer      SIGKILL for one victim, SIGSTOP past its lease for the other
    tally       planted | found for ten kinds
    run         the story: deliver, kill, tamper, export, lose, rebuild, read, tally

What is planted comes from the ledgers of injector, cloud and killer, and the book is not asked.
What is found comes from the findings of the four runbooks, which read files of the book and the
export. Both are sets of airport codes; the demo fails unless they are equal and none is empty.
"""
