"""Turning answers into actions: the one room that may use both halves, to rebuild and repair.

    survey       what is left of a log: segments judged, holes, edits, doubles   evidence, survey
    fold         all that is known, from the start or from a checkpoint          folding, columnar
    certify      which keys are proven, which are not, and why                   certificate, page
    cache alone  as of an instant, into a folder of its own                      caching, bulk
    act          build aside, check, set the old aside, swap, tell the log       rebuild, keeping

``rebuild`` makes state.db anew from the log, also from a log with holes, and says what is missing.
"""

from tallybook.recover.certificate import Certificate
from tallybook.recover.rebuild import Rebuilt, look, rebuild
from tallybook.recover.steps import Steps

__all__ = ["Certificate", "Rebuilt", "Steps", "look", "rebuild"]
