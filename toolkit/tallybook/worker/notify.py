"""Telling a service manager how this process is: sd_notify(3), one datagram a word.

Where the environment names no NOTIFY_SOCKET nothing is sent.
"""

from __future__ import annotations

import logging
import os
import socket

log = logging.getLogger("tallybook.worker")
VARIABLE = "NOTIFY_SOCKET"
READY = "READY=1"
WATCHDOG = "WATCHDOG=1"
STOPPING = "STOPPING=1"


def notify(word: str) -> None:
    """Send ``word`` to the service manager that started this process, if one did."""
    address = os.environ.get(VARIABLE)
    if not address:
        return
    if address.startswith("@"):  # an abstract socket of Linux
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(word.encode(), address)
    except OSError as error:
        log.warning("%s does not take %s: %s", VARIABLE, word, error.strerror)
