"""Runbooks: parameterized notebooks that answer one question and leave a report.

A runbook is a notebook in ``runbooks/``. Its first cell is the question, its second, tagged
``parameters``, declares what can be asked, each further one makes one call and shows one
result, and the last says ``answer(findings)``. It runs in three ways: opened in JupyterLab,
by papermill alone, and by ``run``, which is what ``tallybook runbook run`` calls.

``run`` goes through these rooms, in this order:

    catalogue    which file is meant, what it can be asked
    orders       what the user gave, checked: parameters (the given texts, as values of the
                 declared types), bounds, limits (runbooks.toml), secrets (only references)
    turns        one run of a runbook on a book at a time
    ledger       a line when a run begins, a line when it ends
    folder       a place for the run, written aside and renamed at its end
    engine       papermill, in one of the kernels: a new one of this Python, or a warm one
    answers      the findings that the last cell displayed, and the status they mean
    tuning       from where on something is a finding: runbooks.toml (called by notebooks)
    choices      what an empty parameter stands for (called by notebooks)
    report       one page: findings first, code folded, no network
                 (drawing and tables make safe what came out of a cell)
    keeping      which runs are kept, by count and age
    index        all runs on one page, with their trends

Bad input is refused before a kernel starts. From then on every end is kept: a cell's error, a
kernel that was killed, an answer that is missing are a status in the ledger and in the report.
The status is clean (exit code 0), findings (1), bad_input (2), failed (3) or incomplete (4).

    from tallybook import runbook
    result = runbook.run("stuck_leases", {"since": "2026-11-29"}, book="book")
    result.status, result.findings, result.report

Nothing here reads a log: notebooks ask ``tallybook.ops``. Nothing here writes into a book.
papermill and Jupyter are imported when a run begins, not before.
"""

from tallybook.ops.finding import Finding, finding
from tallybook.runbook.answers import Answer, answer
from tallybook.runbook.catalogue import Runbook, find, listed
from tallybook.runbook.choices import export_or_sample, job_or_worst
from tallybook.runbook.runner import RunResult, history, run, run_all
from tallybook.runbook.secrets import Secret, secret
from tallybook.runbook.trial import Trial, trial
from tallybook.runbook.tuning import own as own_thresholds
from tallybook.runbook.tuning import thresholds
from tallybook.runbook.under_way import EXIT_CODES

__all__ = [
    "EXIT_CODES",
    "Answer",
    "Finding",
    "RunResult",
    "Runbook",
    "Secret",
    "Trial",
    "answer",
    "export_or_sample",
    "find",
    "finding",
    "history",
    "job_or_worst",
    "listed",
    "own_thresholds",
    "run",
    "run_all",
    "secret",
    "thresholds",
    "trial",
]
