# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, controlled by its DevTools protocol over a pair of pipes."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find_browser():
    """The program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page. Console errors and reports of the content security policy are collected in `log`."""

    def __init__(self, width=1000, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="quern-browser-", ignore_cleanup_errors=True)
        to_browser, from_browser = os.pipe(), os.pipe()

        def descriptors():
            # The protocol uses the descriptors 3 and 4; the other ends of the pipes may have them.
            os.dup2(os.dup(to_browser[0]), 103)
            os.dup2(os.dup(from_browser[1]), 104)
            os.dup2(103, 3)
            os.dup2(104, 4)
        self.process = subprocess.Popen([find_browser(), "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                         "--user-data-dir=" + self.folder.name, "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=descriptors)
        os.close(to_browser[0])
        os.close(from_browser[1])
        self.output, self.input = to_browser[1], from_browser[0]
        self.buffer, self.number, self.session, self.log = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.log.append(json.dumps(answer["params"]))
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def message(self, seconds=60):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.input], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError("the browser does not answer")
            block = os.read(self.input, 1 << 16)
            if not block:
                raise AssertionError("the browser has ended")
            self.buffer += block
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def resize(self, width, height, dark=True):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for(f"location.href == {json.dumps(url)} && document.readyState == 'complete'")

    def value(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, script, seconds=30):
        end = time.monotonic() + seconds
        while not self.value(script):
            if time.monotonic() > end:
                raise AssertionError(f"{script} does not come true; the page says:\n{self.value('document.body.innerText')}\n{self.log}")
            time.sleep(0.05)

    def text(self, element):
        return self.value(f"document.getElementById({json.dumps(element)}).textContent")

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.output)
        os.close(self.input)
        self.folder.cleanup()
