#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`quern top` and `quern serve --top` with real servers, in a pipe and on a terminal that the test creates.

usage: top_test.py QUERN_SERVE QUERN [-v] [TEST...]
"""
import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

import server as serving
from server import KERNEL, Server

QUERN = None
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def token_file(folder):
    path = pathlib.Path(folder, "token")
    path.write_text("0123456789abcdef0123456789abcdef\n")
    path.chmod(0o600)
    return path


def top(*words, status=0, env=None):
    done = subprocess.run([QUERN, "top", *map(str, words)], capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})
    assert done.returncode == status, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done


def wait_for_count(server, count):
    """A server counts a request after it has answered it."""
    server.wait_for(lambda: sum(row["count"] for row in server.stats()["requests"] if row["path"] == "/v1/compile") == count)


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, words, width=100, height=30):
        self.fd, inner = pty.openpty()
        self.resize(width, height)
        self.before = termios.tcgetattr(inner)
        self.process = subprocess.Popen(words, stdin=inner, stdout=inner, stderr=inner, start_new_session=True, env={**os.environ, "TERM": "xterm", "QUERN_CACHE": "0"},
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.inner, self.text = inner, ""

    def resize(self, width, height):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read_until(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            if time.monotonic() > end:
                self.process.kill()
                raise AssertionError(f"no {pattern!r} in {self.text[-3000:]!r}")
            if select.select([self.fd], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.text += os.read(self.fd, 1 << 16).decode()

    def frame(self):
        """The lines of the last complete screen."""
        frames = self.text.split("\x1b[H")
        whole = [each for each in frames if each.rstrip("\0").endswith("\x1b[J")]
        return re.split("\r+\n", CONTROL.sub("", whole[-1]))

    def send(self, text):
        os.write(self.fd, text.encode())

    def ended(self):
        status = self.process.wait(60)
        self.read_until(r"\x1b\[\?1049l")
        after = termios.tcgetattr(self.inner)
        os.close(self.inner)
        os.close(self.fd)
        return status, after == self.before


class Plain(unittest.TestCase):
    def setUp(self):
        self.server = Server("--workers", 2).ready()
        self.addCleanup(self.server.stop)
        self.url = "unix:" + self.server.socket

    def test_figures_are_those_of_the_requests(self):
        for number in (1, 1, 1, 2, 2, 3):
            self.server.compile(KERNEL % number, name=f"file{number}.cu")
        self.server.compile("nonsense", name="wrong.cu")
        wait_for_count(self.server, 7)
        text = top(self.url, "--once").stdout
        self.assertRegex(text, rf"(?m)^{self.url}  ready .* 0 of 2 .*0/256 ")
        self.assertRegex(text, r"(?m)^  memory   \[#{10}\.{14}\]  42\.9 % +- +3$")
        self.assertRegex(text, r"(?m)^  compiled \[#{14}\.{10}\]  57\.1 % +- +4$")
        self.assertIn("7 compile requests answered, 0 of them failed", text)
        names = re.findall(r"(?m)^ +\d+ ms +(\d+) +[\d:]+ +cuda +(\S+)", text)
        self.assertEqual(sorted(names), [("200", "file1.cu"), ("200", "file2.cu"), ("200", "file3.cu"), ("422", "wrong.cu")])

    def test_json_has_a_reading_a_line(self):
        self.server.compile(KERNEL % 1)
        wait_for_count(self.server, 1)
        lines = top(self.url, "--json", "--count", 3, "--interval", 0.1).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        for number, line in enumerate(lines):
            [row] = json.loads(line)["servers"]
            compiles = [(each["status"], each["count"]) for each in row["stats"]["requests"] if each["path"] == "/v1/compile"]
            self.assertEqual((row["server"], row["stats"]["nvrtc_runs"], compiles), (self.url, 1, [(200, 1)]))
            self.assertEqual(row["requests_per_s"], None if number == 0 else 0)

    def test_rates_are_per_second(self):
        self.server.compile(KERNEL % 1)
        stop = threading.Event()
        count = [0]

        def load():
            connection = self.server.connection()
            while not stop.is_set():
                self.server.compile(KERNEL % 1, connection)
                count[0] += 1
                time.sleep(0.005)
        thread = threading.Thread(target=load)
        begin = time.monotonic()
        thread.start()
        lines = top(self.url, "--json", "--count", 4, "--interval", 0.5).stdout.splitlines()
        stop.set()
        thread.join()
        rate = count[0] / (time.monotonic() - begin)
        for line in lines[2:]:
            seen = json.loads(line)["servers"][0]["requests_per_s"]
            self.assertTrue(rate / 2 < seen < rate * 2, (seen, rate))

    def test_several_servers_have_a_sum(self):
        second = Server("--workers", 3).ready()
        self.addCleanup(second.stop)
        for server, number in ((self.server, 1), (second, 2), (second, 3)):
            server.compile(KERNEL % number, name=f"{number}.cu")
        text = top(f"{self.url},unix:{second.socket}", "unix:/nonexistent/sock", "--once").stdout
        self.assertRegex(text, r"(?m)^sum .* 0 of 5 .*0/512 ")
        self.assertRegex(text, r"(?m)^  compiled .* 3$")
        self.assertRegex(text, r"(?m)^unix:/nonexistent/sock .*No such file")
        self.assertRegex(text, rf"(?m)^ .* 1\.cu .*{self.url}$")

    def test_a_token_comes_from_the_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            token = token_file(folder)
            server = Server("--workers", 1, "--token-file", token).ready()
            self.addCleanup(server.stop)
            self.assertIn("wants a bearer token", top(f"unix:{server.socket}", "--once", status=1).stdout)
            self.assertIn("  ready ", top(f"unix:{server.socket}", "--once", env={"QUERN_REMOTE_TOKEN_FILE": str(token)}).stdout)
            self.assertIn("  ready ", top("--once", env={"QUERN_REMOTE_TOKEN_FILE": str(token), "QUERN_REMOTE": f"unix:{server.socket}"}).stdout)

    def test_mistakes(self):
        self.assertIn("no server is named", top(status=2, env={"QUERN_REMOTE": ""}).stderr)
        self.assertIn("not the address", top("ftp:x", "--once", status=2).stderr)
        self.assertIn("--interval", top(self.url, "--interval", 0, status=2).stderr)

    def test_another_server_is_not_taken_for_one(self):
        listener = socket.create_server(("127.0.0.1", 0))
        for body in (b"<html>", b"[]", b'{"protocol": 1}', b'{"protocol": 1, "nvrtc_runs": "many"}', b'{"protocol":1,"nvrtc_runs":1,"slowest":[{"name":7}]}', b"\xff"):
            def answer(body=body):
                connection = listener.accept()[0]
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                connection.close()
            thread = threading.Thread(target=answer)
            thread.start()
            self.assertIn("its answer", top(f"http://127.0.0.1:{listener.getsockname()[1]}", "--once", status=1).stdout)
            thread.join()

    def test_ctrl_c_in_a_pipe_ends_with_130(self):
        process = subprocess.Popen([QUERN, "top", self.url], stdout=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 130)
        process.stdout.close()

    def test_nothing_that_a_server_says_reaches_the_terminal_as_control(self):
        evil = "a\x1b]0;title\x07\x1b[2J\r\n\x9b31m\u202eb\x7f.cu"
        self.server.compile(KERNEL % 1, name=evil)
        text = top(self.url, "--once").stdout
        self.assertIn("a?]0;title??[2J???31m?b?.cu", text)
        self.assertEqual([c for c in text if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u202e")], [])


class OnTerminal(unittest.TestCase):
    def setUp(self):
        self.server = Server("--workers", 1).ready()
        self.url = "unix:" + self.server.socket

    def tearDown(self):
        self.server.stop()

    def test_it_draws_resizes_and_leaves_the_terminal_as_it_was(self):
        for end, wanted in (("q", 0), ("\x03", 0)):
            terminal = Terminal([QUERN, "top", self.url, "--interval", "0.2"])
            terminal.read_until(r"results .*clients|compiled")
            self.assertLessEqual(max(map(len, terminal.frame())), 100)
            terminal.resize(60, 7)
            terminal.text = ""
            terminal.read_until(r"\x1b\[J[^\0]*\x1b\[J")
            self.assertLessEqual(max(map(len, terminal.frame())), 60)
            self.assertLessEqual(len(terminal.frame()), 7)
            terminal.send(end)
            self.assertEqual(terminal.ended(), (wanted, True), repr(end))

    def test_a_server_that_goes_away_and_comes_back(self):
        for number in range(5):
            self.server.compile(KERNEL % number)
        terminal = Terminal([QUERN, "top", self.url, "--interval", "0.2"])
        terminal.read_until(r"compiled \[#{24}\] +100\.0 % +0\.0 +5")
        self.server.process.kill()
        self.server.process.wait()
        terminal.read_until("Connection refused")
        again = subprocess.Popen([serving.PROGRAM, "--listen", self.url, "--workers", "1"], stderr=subprocess.DEVNULL, env={**os.environ, "QUERN_CACHE": "0"})
        terminal.text = ""
        terminal.read_until(r"compiled \[\.{24}\] +0\.0 % +0\.0 +0\b")
        self.assertNotRegex(terminal.text, r" -\d")
        terminal.send("q")
        self.assertEqual(terminal.ended(), (0, True))
        again.terminate()
        again.wait()

    def test_serve_top_shows_its_own_server_and_ends_it(self):
        with tempfile.TemporaryDirectory() as folder:
            token = token_file(folder)
            terminal = Terminal([QUERN, "serve", "--top", "--listen", f"unix:{folder}/s", "--workers", "1", "--token-file", str(token)])
            terminal.read_until(r"this server +ready")
            connection = serving.UnixConnection(f"{folder}/s")
            connection.request("POST", "/v1/compile", json.dumps({"source": KERNEL % 1, "name": "mine.cu"}), {"Authorization": "Bearer " + token.read_text().strip()})
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
            terminal.read_until(r"mine\.cu")
            log = re.search(r"log: (\S+)", terminal.text).group(1)
            self.assertIn('"/v1/compile"', pathlib.Path(log).read_text())
            self.assertNotIn("request_id", terminal.text)
            terminal.send("q")
            self.assertEqual(terminal.ended(), (0, True))
            self.assertIn(log, terminal.text)
            os.unlink(log)
            self.assertFalse(os.path.exists(f"{folder}/s"))

    def test_serve_top_with_a_log_file_and_a_server_that_cannot_start(self):
        with tempfile.TemporaryDirectory() as folder:
            terminal = Terminal([QUERN, "serve", "--top", "--listen", f"unix:{folder}/s", "--workers", "1", "--log-file", f"{folder}/log"])
            terminal.read_until(r"this server +ready")
            terminal.send("\x03")
            self.assertEqual(terminal.ended(), (0, True))
            events = [json.loads(line)["event"] for line in pathlib.Path(folder, "log").read_text().splitlines()]
            self.assertIn("stopped", events)
            self.assertEqual(os.stat(f"{folder}/log").st_mode & 0o777, 0o600)
            for words, says in ((["--listen", "nonsense"], "nonsense"), (["--listen", f"unix:{folder}/s", "--log-file", f"{folder}/no/log"], "cannot open the log file"),
                                (["--listen", f"unix:{folder}/s", "--top", "--nonsense"], "--nonsense")):
                done = subprocess.run([QUERN, "serve", "--top", *words], capture_output=True, text=True, timeout=60)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stdout, "")
            done = subprocess.run([serving.PROGRAM, "--listen", f"unix:{folder}/s", "--stats-fd", "77"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn("descriptor 77 of --stats-fd is not open", done.stderr)

    def test_the_server_ends_with_its_view(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([QUERN, "serve", "--top", "--listen", f"unix:{folder}/s", "--workers", "1", "--log-file", f"{folder}/log"], stdout=subprocess.PIPE,
                                       env={**os.environ, "TMPDIR": folder})  # a view that is killed leaves its temporary file
            process.stdout.readline()
            self.assertTrue(os.path.exists(f"{folder}/s"))
            process.kill()
            process.wait()
            process.stdout.close()
            end = time.monotonic() + 30
            while os.path.exists(f"{folder}/s"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)

    def test_a_log_file_is_opened_again(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            server = Server("--workers", 1, "--log-file", log).ready()
            self.addCleanup(server.stop)
            self.assertIn('"listening"', log.read_text())
            log.rename(log.with_suffix(".1"))
            server.process.send_signal(signal.SIGHUP)
            server.wait_for(lambda: log.exists() and "reloaded" in log.read_text())


if __name__ == "__main__":
    serving.PROGRAM = sys.argv.pop(1)
    QUERN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
