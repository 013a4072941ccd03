"""A headless Chromium, driven over a pipe by its DevTools protocol: no driver, no port, no profile that stays."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 300.0


def program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser. What it asked for and what it complained of is kept."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self.process = process.pid
        self._to = to
        self._back = os.fdopen(back, "rb", buffering=0)
        self._rest = b""
        self._last = 0
        self._session = ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        """Console messages, exceptions, refusals of the content security policy."""
        self._loaded = ""
        """The last document that was loaded whole."""
        self._events: list[dict[str, Any]] = []
        self._tracing = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session and not method.startswith(("Target.", "Tracing.")):
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._receive()
            if found.get("id") == self._last:
                assert "error" not in found, (method, found["error"])
                return dict(found["result"])

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            data = self._back.read(1 << 20)
            assert data and time.monotonic() < deadline, "the browser has ended"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        self._notice(found.get("method", ""), found.get("params", {}))
        return found

    def _notice(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console: {params['args']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {params['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.complaints.append(f"log: {params['entry']['text']}")
        elif method == "Page.lifecycleEvent" and params["name"] == "load":
            self._loaded = params["loaderId"]
        elif method == "Tracing.dataCollected":
            self._events += params["value"]
        elif method == "Tracing.tracingComplete":
            self._tracing = False

    def view(self, width: int, height: int, *, phone: bool = False, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, key: str, code: int) -> None:
        """A key: `Tab`, 9; `Enter`, 13."""
        of = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", **of, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **of)

    def scripts(self, on: bool) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def open(self, url: str) -> None:
        """And wait until that document is there: one before it may still be loading, after a click."""
        document = self.call("Page.navigate", url=url)["loaderId"]
        while self._loaded != document:
            self._receive()

    def ask(self, expression: str) -> Any:
        """What it is in the page; also of a promise."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def traced(self, work: Callable[[], object]) -> list[dict[str, Any]]:
        """Chromium's own events of what it did meanwhile, with the time that each took of its thread."""
        self._events, self._tracing = [], True
        categories = "devtools.timeline,disabled-by-default-devtools.timeline"
        self.call("Tracing.start", categories=categories, transferMode="ReportEvents")
        work()
        self.call("Tracing.end")
        while self._tracing:
            self._receive()
        return self._events

    def picture(self, **clip: float) -> bytes:
        """PNG; `clip`: x, y, width, height."""
        options: dict[str, Any] = (
            {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        )
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **options)["data"])


@contextlib.contextmanager
def browser(timezone: str = "UTC") -> Iterator[Browser]:
    """A browser of its own; the program must be there (`program`)."""
    name = program()
    assert name
    to_read, to_write = os.pipe()
    back_read, back_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = [
            "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
            "--disable-extensions", "--disable-sync", "--no-default-browser-check", "--disable-breakpad",
            "--renderer-process-limit=1", "--hide-scrollbars", "--no-zygote", "--force-color-profile=srgb",
            f"--user-data-dir={profile}",
        ]  # fmt: skip
        process = subprocess.Popen(
            # The protocol's own numbers of descriptors.
            ["bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{back_write}', name, *options],
            pass_fds=(to_read, back_write),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TZ": timezone, "HOME": profile},
        )
        os.close(to_read)
        os.close(back_write)
        driver = None
        try:
            driver = Browser(process, to_write, back_read)
            yield driver
        finally:
            # Its helpers too: they write into the profile until they are gone.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)
            os.close(to_write)
            if driver is not None:
                driver._back.close()
