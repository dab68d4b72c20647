"""A headless Chromium that tests look at pages with, by its debugging pipe alone."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest

PHONE, WIDE = (390, 844), (1600, 1000)
SECONDS = 120
LAUNCH = """\
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)  # Chromium reads from 3 and writes to 4
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def program() -> str:
    """The browser; the test is skipped where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no Chromium is installed (apt-get install chromium)")
    return found


class Browser:
    """One tab.  `send` talks to it as Chrome's DevTools protocol says."""

    def __init__(self, to: BinaryIO, back: BinaryIO) -> None:
        self._to, self._back = to, back
        self._number, self._session, self._rest = 0, "", b""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = session["sessionId"]
        self.send("Page.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._back.fileno(), 1 << 16)
            assert block, "Chromium has ended"
            self._rest += block
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def show(self, page: Path, size: tuple[int, int], *, dark: bool = False) -> None:
        """Open a page as a screen of that size shows it; scripts of the page are off."""
        width, height = size
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Emulation.setScriptExecutionDisabled", value=True)
        self.send("Page.navigate", url=page.resolve().as_uri())
        while True:
            if self._read().get("method") == "Page.loadEventFired":
                return

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key: "Tab" or "Enter"."""
        code = {"Tab": 9, "Enter": 13}[key]
        typed = "\r" if key == "Enter" else ""
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key,
                windowsVirtualKeyCode=code, text=typed if kind == "keyDown" else "",
            )  # fmt: skip

    def picture(self, path: Path) -> None:
        """Write what the screen shows as PNG."""
        shown = self.send("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(shown))

    def close(self) -> None:
        """End the program."""
        self._session = ""
        self.send("Browser.close")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser for the time of the block; profile: an empty directory of its own."""
    command = [
        program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
        f"--user-data-dir={profile}", "about:blank",
    ]  # fmt: skip
    ours, theirs = os.pipe(), os.pipe()
    ends = (ours[0], theirs[1])
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, *map(str, ends), *command],
        pass_fds=ends,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in ends:
        os.close(end)
    with os.fdopen(ours[1], "wb") as to, os.fdopen(theirs[0], "rb") as back:
        try:
            made = Browser(to, back)
            yield made
            made.close()
        finally:
            with suppress(BrokenPipeError):
                to.close()  # it ends where nobody can tell it anything any more
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
