"""What every page has: one file, a strict policy, one stylesheet, one script, both by their hash.

Text from anywhere goes through ``text`` before it stands in a page.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from pathlib import Path

from tallybook.payload import visible

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def text(value: str) -> str:
    """``value`` as text of a page: no markup, no colours of a terminal, and what cannot be seen
    or would turn words around stands as an escape."""
    return escape(plain(value))


def plain(value: str) -> str:
    """``value`` without the colours of a terminal, and with an escape for what cannot be seen."""
    return _UNSEEN.sub(lambda one: visible(one[0]), _ANSI.sub("", value.replace("\r\n", "\n")))


def page(title: str, body: str) -> str:
    """A whole page; ``title`` is text, ``body`` is HTML that is safe."""
    style, script = _beside("report.css"), _beside("report.js")
    allowed = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{allowed}; img-src data:; base-uri 'none'; \
form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{text(title)}</title>
<style>{style}</style>
</head>
<body>
{body}
<script>{script}</script>
</body>
</html>
"""


@cache
def _beside(name: str) -> str:
    return "\n" + Path(__file__).with_name(name).read_text("utf-8")


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
