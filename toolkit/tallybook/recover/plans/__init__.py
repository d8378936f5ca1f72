"""Repair plans: what to do about each difference, as a file that a person reviews.

    sides      what both sides have of the keys that differ, asked at once     sides, shapes
    decide     a policy gives each cause an action; pure                       policies
    make       the plan, with a digest of what it was made from                making, file
    apply      in batches, each a change of the book that names its steps      applying, acts
    undo       from a file of what stood before                                undofile

What was done of a plan is read from the log (``past``), so that a plan that was killed in the
middle goes on where it was, and one that is applied twice changes nothing the second time.
"""

from tallybook.recover.plans.applying import Applied, apply, undo
from tallybook.recover.plans.file import ACTIONS, Action, Plan, read, write
from tallybook.recover.plans.making import Begun, begin, make
from tallybook.recover.plans.policies import POLICIES

__all__ = [
    "ACTIONS", "POLICIES", "Action", "Applied", "Begun", "Plan", "apply", "begin", "make", "read",
    "undo", "write",
]  # fmt: skip
