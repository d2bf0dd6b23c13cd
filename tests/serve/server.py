# SPDX-License-Identifier: Apache-2.0
"""A server process for tests, and a client of docs/protocol.md that uses Python's HTTP."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

PROGRAM = None  # set by the test program from its first argument
KERNEL = 'extern "C" __global__ void k(int* p) { p[threadIdx.x] = %d; }\n'


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("server", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()
        self.json = json.loads(self.body) if response.headers.get("Content-Type") == "application/json" else None

    @property
    def code(self):
        return self.json["error"]["code"]


class Server:
    """quern-serve on a Unix socket; its log is read as it is written."""

    def __init__(self, *options, listen=True, env=None):
        self.folder = tempfile.TemporaryDirectory(prefix="quern-serve-")
        self.socket = os.path.join(self.folder.name, "sock")
        self.log_path = os.path.join(self.folder.name, "log")
        words = [PROGRAM, *(["--listen", "unix:" + self.socket] if listen else []), *map(str, options)]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(words, stderr=log, stdout=log,
                                            env={**os.environ, "QUERN_CACHE": "1", "QUERN_CACHE_DIR": os.path.join(self.folder.name, "cache"), **(env or {})})

    def ready(self, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError("the server has ended:\n" + self.log())
            with contextlib.closing(self.connection()) as connection, contextlib.suppress(OSError):
                if self.ask("GET", "/readyz", connection=connection).status == 200:
                    return self
            time.sleep(0.02)
        raise AssertionError("the server is not ready:\n" + self.log())

    def connection(self, timeout=60):
        return UnixConnection(self.socket, timeout)

    def ask(self, method, path, body=None, headers=None, connection=None):
        each = connection or self.connection()
        each.request(method, path, body, headers or {})
        answer = Answer(each.getresponse())
        if connection is None:
            each.close()
        return answer

    def compile(self, source, connection=None, headers=None, **fields):
        body = json.dumps({"source": source, "name": "k.cu", **fields})
        return self.ask("POST", "/v1/compile", body, headers, connection)

    def stats(self, headers=None):
        return self.ask("GET", "/v1/stats", headers=headers).json

    def log(self):
        return pathlib.Path(self.log_path).read_text()

    def events(self, name):
        return [each for each in map(json.loads, self.log().splitlines()) if each["event"] == name]

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("it did not come to that:\n" + self.log())
            time.sleep(0.02)

    def workers(self):
        return self.children("quern-worker")

    def children(self, name):
        """The processes of this name that the server has started."""
        found = []
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
                if re.search(rf"^PPid:\s{self.process.pid}$", text, re.M) and text.startswith(f"Name:\t{name}\n"):
                    found.append(int(status.parent.name))
            except OSError:
                pass
        return found

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(120)
        self.folder.cleanup()
        return self.process.returncode


class ServerCase(unittest.TestCase):
    """Tests that share one server, started with OPTIONS."""

    OPTIONS = ("--workers", 2)

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS).ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def still_works(self):
        answer = self.server.compile(KERNEL % (time.monotonic_ns() % 10**9))
        self.assertEqual(answer.status, 200, answer.body)
