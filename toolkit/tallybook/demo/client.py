"""The demo's side of the cloud: starting it, and its admin paths."""

from __future__ import annotations

import json
import secrets
import select
import subprocess
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from tallybook.demo.children import Children
from tallybook.demo.faults import Plan
from tallybook.demo.folder import Folder
from tallybook.errors import TallybookError

START_S = 30.0
ANSWER_S = 60.0


@dataclass(frozen=True, slots=True)
class CloudClient:
    """A running cloud."""

    port: int
    token: str

    @property
    def url(self) -> str:
        """Where jobs are delivered to."""
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    def start(
        cls, children: Children, place: Folder, faults: Plan, records: list[str]
    ) -> CloudClient:
        """Start the cloud on a free port. It ends with this process: they share a pipe."""
        arguments = ["-m", "tallybook.demo.cloud", "--folder", str(place.cloud)]
        pipe = subprocess.PIPE
        process = children.start("cloud", arguments, stdin=pipe, stdout=pipe)
        order = {"seed": faults.seed, "timeout_s": faults.timeout_s, "records": records}
        token = secrets.token_urlsafe(32)
        line = _first_line(process, json.dumps(order | {"token": token}))
        if not line:
            raise TallybookError(f"demo: the cloud did not start: {children.said('cloud')}")
        return cls(json.loads(line)["port"], token)

    def ledgers(self) -> dict[str, list[str]]:
        """What injector and cloud did: {kind: [codes]}."""
        found: dict[str, list[str]] = self._ask("ledgers", {})
        return found

    def tamper(self, order: dict[str, list[Any]]) -> None:
        """Change, delete and add rows behind the system's back."""
        self._ask("tamper", order)

    def export(self) -> None:
        """Have the cloud write its export."""
        self._ask("export", {})

    def _ask(self, path: str, order: dict[str, Any]) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)
        headers = {"Authorization": f"Bearer {self.token}"}
        try:
            connection.request("POST", f"/admin/{path}", json.dumps(order), headers)
            answer = connection.getresponse()
            content = answer.read()
        except OSError as error:
            raise TallybookError(f"demo: the cloud does not answer: {error}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise TallybookError(f"demo: the cloud refused {path}: {content.decode()}")
        return json.loads(content)


def _first_line(process: subprocess.Popen[str], order: str) -> str:
    """Send the order and wait for one line; empty when the process ended or said nothing."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process was started without pipes")
    try:
        process.stdin.write(order + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return ""
    readable, _, _ = select.select([process.stdout], [], [], START_S)
    return process.stdout.readline() if readable else ""
