#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page at `/` of a real server, in a headless Chromium. Without Chromium the tests of the page itself are skipped.

usage: page_test.py QUERN_SERVE [-v] [TEST...]

QUERN_SCREENSHOTS=DIR keeps pictures of the page there. `page_test.py QUERN_SERVE Shown` ends with the status 77 (skipped) without Chromium.
"""
import base64
import hashlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import server as serving
from browser import Browser, find_browser
from server import KERNEL, Server

NO_BROWSER = "there is no Chromium here: tools/setup --level deploy installs it"
TOKEN = "0123456789abcdef0123456789abcdef"


def free_port():
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


class Delivery(unittest.TestCase):
    """How the page is delivered; no browser is needed."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        tokens = pathlib.Path(cls.folder.name, "tokens")
        tokens.write_text(TOKEN + "\n")
        tokens.chmod(0o600)
        cls.server = Server("--workers", 1, "--token-file", tokens).ready()
        cls.answer = cls.server.ask("GET", "/")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.folder.cleanup()

    def test_it_needs_no_token_and_contains_no_statistics(self):
        self.assertEqual(self.answer.status, 200)
        self.assertEqual(self.answer.headers["Content-Type"], "text/html; charset=utf-8")
        source = pathlib.Path(__file__).resolve().parents[2] / "src/serve/page/index.html"
        self.assertEqual(self.answer.body, source.read_bytes())
        for path in ("/v1/stats", "/metrics", "//", "/index.html", "/?x/../v1/stats/"):
            self.assertEqual(self.server.ask("GET", path).status, 200 if path.startswith("/?") else 401, path)
        head = self.server.ask("HEAD", "/")
        self.assertEqual((head.status, head.body), (200, b""))

    def test_its_policy_allows_its_own_script_and_style_alone(self):
        policy = dict(part.strip().split(" ", 1) for part in self.answer.headers["Content-Security-Policy"].split(";"))
        html = self.answer.body.decode()
        for element, directive in (("script", "script-src"), ("style", "style-src")):
            [content] = re.findall(rf"(?s)<{element}>(.*?)</{element}>", html)
            self.assertEqual(policy[directive], "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'")
        self.assertEqual((policy["default-src"], policy["connect-src"], policy["frame-ancestors"]), ("'none'", "'self'", "'none'"))
        self.assertNotRegex(policy["script-src"] + policy["style-src"], "unsafe")
        self.assertEqual((self.answer.headers["X-Content-Type-Options"], self.answer.headers["Referrer-Policy"]), ("nosniff", "no-referrer"))

    def test_it_names_no_other_server_and_writes_no_markup(self):
        html = self.answer.body.decode()
        self.assertEqual(set(re.findall(r"https?://[^\s\"'<]+", html)), {"http://www.w3.org/2000/svg"})
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "localStorage", "onclick", "onload", "<link rel=\"style"):
            self.assertNotIn(word, html)


@unittest.skipUnless(find_browser(), NO_BROWSER)
class Shown(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def start(self, *options):
        port = free_port()
        server = Server("--workers", 2, "--listen", f"tcp:127.0.0.1:{port}", *options).ready()
        self.addCleanup(server.stop)
        self.browser.open("about:blank")  # the previous page continues to poll
        self.browser.log.clear()
        return server, f"http://127.0.0.1:{port}/"

    def picture(self, name):
        if folder := os.environ.get("QUERN_SCREENSHOTS"):
            self.browser.screenshot(os.path.join(folder, name + ".png"))

    def totals(self):
        return self.browser.value("Object.fromEntries([...document.querySelectorAll('#tiers tr')].map(r => [r.dataset.tier, r.querySelector('.total').textContent]))")

    def test_statistics_count_the_requests(self):
        server, url = self.start()
        for number in (1, 1, 1, 2, 2, 3):
            server.compile(KERNEL % number, name=f"file{number}.cu")
        evil = "<script>document.title='taken'</script><img src=x onerror=alert(1)>"
        server.compile("nonsense", name=evil)
        server.compile(f"#include <cooperative_groups.h>\n{KERNEL % 4}", name="reduce/segmented_sum.cu")
        self.browser.open(url)
        self.browser.wait_for("document.getElementById('requests').textContent == '8'")
        totals = self.totals()
        self.assertEqual((totals["memory"], totals["disk"], totals["shared"], totals["compiled"]), ("3", "0", "0", "5"))
        self.assertEqual([self.browser.text(each) for each in ("state", "failed", "compiled", "busy", "workers", "queue", "queue-limit")], ["ready", "0", "5", "0", "2", "0", "256"])
        names = self.browser.value("[...document.querySelectorAll('#slowest .name')].map(each => each.textContent)")
        self.assertEqual(sorted(names), sorted(["file1.cu", "file2.cu", "file3.cu", evil, "reduce/segmented_sum.cu"]))
        self.assertEqual(self.browser.value("document.querySelectorAll('#slowest script, #slowest img').length"), 0)
        self.assertEqual(self.browser.value("document.title"), "quern compile service")
        self.browser.wait_for("document.getElementById('request-rate').textContent == '0.0'")
        server.compile(KERNEL % 1)
        self.browser.wait_for("document.getElementById('requests').textContent == '9'")
        self.assertEqual(self.browser.log, [])

    def test_it_fits_a_narrow_window_and_follows_the_scheme(self):
        server, url = self.start()
        connection = server.connection()
        self.browser.open(url)
        for number in range(150):  # a few seconds of statistics for the pictures
            server.compile(KERNEL % (number % 30), connection, name=f"kernels/group_{number % 30}/a_rather_long_file_name_of_a_kernel_{number % 30}.cu")
            time.sleep(0.03)
        self.browser.wait_for("document.querySelectorAll('#request-spark path').length == 2")
        backs = []
        for width, dark, name in ((1000, True, "wide-dark"), (1000, False, "wide-light"), (400, True, "narrow-dark")):
            self.browser.resize(width, 900, dark)
            self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
            backs.append(self.browser.value("getComputedStyle(document.body).backgroundColor"))
            self.picture(name)
        self.assertEqual(backs[0], backs[2])
        self.assertNotEqual(backs[0], backs[1])
        self.browser.resize(1000, 900)
        connection.close()

    def test_a_token_is_asked_for_and_a_wrong_one_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder, "tokens")
            tokens.write_text(TOKEN + "\n")
            tokens.chmod(0o600)
            server, url = self.start("--token-file", tokens)
            self.browser.open(url)
            self.browser.wait_for("!document.getElementById('ask').hidden")
            self.assertTrue(self.browser.value("document.getElementById('statistics').hidden"))

            def give(token):
                self.browser.value(f"document.getElementById('token').value = {token!r}; document.getElementById('token-form').requestSubmit(); 1")
            give("not-the-token-of-this-server")
            self.browser.wait_for("document.getElementById('error-message').textContent == 'The server does not know this token.'")
            self.picture("token")
            self.assertIsNone(self.browser.value("sessionStorage.getItem('quern-token')"))
            give("\u00e4 b")
            self.browser.wait_for("document.getElementById('error-message').textContent.includes('ASCII')")
            give(TOKEN)
            self.browser.wait_for("!document.getElementById('statistics').hidden && document.getElementById('ask').hidden && document.getElementById('error-message').hidden")
            self.assertEqual(self.browser.value("localStorage.length + ' ' + document.cookie"), "0 ")
            self.assertEqual([each for each in self.browser.log if "401" not in each], [])
            server.stop()

    def test_a_dead_server_is_reported_and_a_new_one_shown(self):
        server, url = self.start()
        server.compile(KERNEL % 1)
        self.browser.open(url)
        self.browser.wait_for("document.getElementById('requests').textContent == '1'")
        server.process.kill()
        server.process.wait()
        self.browser.wait_for("document.getElementById('error-message').textContent.startsWith('The server does not answer')")
        self.assertEqual(self.browser.text("state"), "no data")
        self.picture("dead")
        again = subprocess.Popen([serving.PROGRAM, "--listen", "tcp:" + url.split("/")[2], "--workers", "1"], stderr=subprocess.DEVNULL, env={**os.environ, "QUERN_CACHE": "0"})
        self.addCleanup(again.wait)
        self.addCleanup(again.terminate)
        self.browser.wait_for("document.getElementById('error-message').hidden && document.getElementById('requests').textContent == '0'")
        self.assertNotIn("-", self.browser.text("request-rate") + self.browser.text("compile-rate"))


if __name__ == "__main__":
    serving.PROGRAM = sys.argv.pop(1)
    if sys.argv[1:] == ["Shown"] and not find_browser():
        print(NO_BROWSER)
        sys.exit(77)
    unittest.main()
