"""What a worker process of the demo runs: deliver an airport, then write it into the cache.

TALLYBOOK_DEMO_CLOUD names the cloud, TALLYBOOK_DEMO_PID the process that started this one and
that it ends with. TALLYBOOK_DEMO_VICTIM makes this worker a victim: its
first job is reported in that file, then waits until a file of that name with ``.go`` appears.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

from tallybook.delivery import post
from tallybook.demo.airports import TOPIC
from tallybook.job import Job
from tallybook.worker.context import Context
from tallybook.worker.handlers import handler

CLOUD = "TALLYBOOK_DEMO_CLOUD"
VICTIM = "TALLYBOOK_DEMO_VICTIM"
DEMO_PID = "TALLYBOOK_DEMO_PID"
TIMEOUT_S = 2.0
_PR_SET_PDEATHSIG = 1


@handler(TOPIC)
def sync(job: Job, ctx: Context) -> None:
    """Deliver one airport; its cache entry becomes an event together with job.done."""
    _play_victim(job)
    airport = job.payload
    answer = post(f"{os.environ[CLOUD]}/airports", job, body=airport, timeout_s=TIMEOUT_S)
    ctx.note(http_status=answer.status, endpoint=answer.endpoint, replayed=answer.replayed)
    ctx.cache.put(airport["icao"], airport, etag=answer.json()["etag"], origin="cloud")


def _play_victim(job: Job) -> None:
    named = os.environ.get(VICTIM)
    if not named or Path(named).exists():
        return
    report = {"job_id": job.job_id, "lease_token": job.lease_token, "record": job.payload["icao"]}
    partial = Path(f"{named}.partial")
    partial.write_text(json.dumps(report), "utf-8")
    partial.rename(named)
    while not Path(f"{named}.go").exists():
        time.sleep(0.02)


def _end_with(demo_pid: int) -> None:
    """On Linux this process is killed when the demo is, even while it is stopped."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != demo_pid:
        raise SystemExit("the demo is gone")


if DEMO_PID in os.environ:
    _end_with(int(os.environ[DEMO_PID]))
