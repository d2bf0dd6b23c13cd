#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a client of compile servers: QUERN_REMOTE and related variables.

usage: client_test.py QUERN_SERVE QUERN [-v] [TEST...]
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import server as serving
from server import Server

QUERN = None
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("QUERN_REMOTE")}
OUTER = '#include "inner.h"\n#include "../up.h"\n#define OUTER (INNER + UP)\n'


class FakeServer:
    """Sends the same bytes, or nothing, on every connection, and keeps it open."""

    def __init__(self, answer=None):
        self.folder = tempfile.TemporaryDirectory()
        self.url = "unix:" + os.path.join(self.folder.name, "sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.url[5:])
        self.listener.listen(64)
        self.requests = []
        self.kept = []
        threading.Thread(target=self.serve, args=(answer,), daemon=True).start()

    def serve(self, answer):
        with contextlib.suppress(OSError):
            while True:
                each = self.listener.accept()[0]
                self.kept.append(each)
                self.requests.append(each.recv(1 << 20))
                if answer is not None:
                    each.sendall(answer)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        for each in [self.listener, *self.kept]:
            each.close()
        self.folder.cleanup()


def http(status, body, **headers):
    headers = {"Quern-Protocol": "1", **headers}
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--workers", 2).ready()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.write("k.cu", 'extern "C" __global__ void k(int* p) { p[threadIdx.x] = 4711; }\n')

    def tearDown(self):
        shutil.rmtree(self.folder)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def quern(self, *words, remote=None, status=0, cache="0", **env):
        variables = {**CLEAN, "QUERN_CACHE": cache, **({"QUERN_REMOTE": remote} if remote else {}), **env}
        done = subprocess.run([QUERN, *map(str, words)], cwd=self.folder, env=variables, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    @property
    def url(self):
        return "unix:" + self.server.socket

    def runs(self):
        return self.server.stats()["nvrtc_runs"]

    def compile_requests(self):
        """Those in the log; a line follows its answer."""
        return [each for each in self.server.events("request") if each["path"] == "/v1/compile"]

    def settled_compile_requests(self):
        """Their number when the log has not grown for a while."""
        count = -1
        while count != (count := len(self.compile_requests())):
            time.sleep(0.5)
        return count

    def compiles_as_here(self, *words):
        """Compiles through the server and locally: the text must be the same, and the server must have compiled it."""
        here = self.quern("compile", *words)
        requests = len(self.compile_requests())
        there = self.quern("compile", *words, remote=self.url, QUERN_REMOTE_ONLY="1")
        self.assertEqual(there.stdout, here.stdout)
        self.assertEqual(there.stderr, here.stderr)
        self.server.wait_for(lambda: len(self.compile_requests()) > requests)

    def test_cuda(self):
        self.compiles_as_here("k.cu")

    def test_cuda_with_headers_of_the_authors(self):
        self.write("include/lib/outer.h", OUTER)
        self.write("include/lib/inner.h", "#define INNER 40\n")
        self.write("include/up.h", "#define UP 2\n")
        self.write("src/beside.h", "#include <lib/outer.h>\n#define BESIDE OUTER\n")
        self.write("src/k.cu", '#include "beside.h"\n#include "../include/up.h"\n#include <cuda_fp16.h>\n#include <quern/device.cuh>\n'
                   'extern "C" __global__ void k(int* p, __half* h) { *p = BESIDE; *h = __float2half(FACTOR); }\n')
        self.compiles_as_here("src/k.cu", "-I", "include", "-D", "FACTOR=3")
        self.compiles_as_here(self.folder / "src/k.cu", "-I", self.folder / "include", "-D", "FACTOR=3")

    def test_python(self):
        self.write("k.py", "from numba import cuda\nN = 3\n@cuda.jit('void(float32[::1])')\ndef k(x):\n    i = cuda.grid(1)\n    if i < x.size:\n        x[i] = N\n")
        self.compiles_as_here("k.py")
        self.compiles_as_here("k.py", "--bind", "N=8")

    def test_the_command_line_names_a_server_too(self):
        runs = self.runs()
        self.write("k.cu", f'extern "C" __global__ void k(int* p) {{ *p = {os.getpid()}; }}\n')
        self.quern("compile", "k.cu", "--remote", self.url)
        self.assertEqual(self.runs() - runs, 1)

    def test_a_kernel_runs(self):
        done = self.quern("run", "k.cu", "zeros(2, int32)", "--block", "2", remote=self.url, QUERN_REMOTE_ONLY="1", QUERN_NVRTC="/nonexistent")
        self.assertIn("4711", done.stdout)

    def test_a_machine_without_nvrtc_compiles_through_a_server(self):
        self.write("dir/a.h", "#define A 815\n")
        self.write("k.cu", '#include "dir/a.h"\nextern "C" __global__ void k(int* p) { *p = A; }\n')
        done = self.quern("compile", "k.cu", remote=self.url, QUERN_NVRTC="/nonexistent/libnvrtc.so")
        self.assertIn("815", done.stdout)

    def test_a_machine_without_nvrtc_asks_once_for_each_kernel(self):
        case = '[[case]]\nname = "c{0}"\nargs = ["zeros({0}, int32)"]\nblock = "{0}"\nexpect = {{ "#0" = {{ value = [{1}] }} }}\n'
        self.write("k.case.toml", 'kernel = "k.cu"\n' + "".join(case.format(n, ", ".join(["4711"] * n)) for n in (1, 2, 3)))
        before = self.settled_compile_requests()
        done = self.quern("test", ".", "--device", "cpu", remote=self.url, QUERN_NVRTC="/nonexistent/libnvrtc.so")
        self.assertIn("3 passed", done.stdout)
        self.assertEqual(self.settled_compile_requests() - before, 1)

    def test_errors_name_the_place_the_server_and_the_request(self):
        self.write("bad.cu", '\nextern "C" __global__ void k(int* p) { *p = nowhere; }\n')
        done = self.quern("compile", "bad.cu", remote=self.url, status=1)
        self.assertIn("bad.cu:2", done.stderr)
        self.assertIn("nowhere", done.stderr)
        request = re.search(r"compiled by " + re.escape(self.url) + r", request ([0-9a-f]{16})", done.stderr)
        self.assertTrue(request, done.stderr)
        self.server.wait_for(lambda: any(each["request_id"] == request[1] for each in self.server.events("request")))

    def test_the_next_server_is_asked_silently(self):
        busy = FakeServer(http(429, json.dumps({"error": {"code": "busy", "message": "full"}}), **{"Retry-After": 1}))
        runs = self.runs()
        self.write("k.cu", 'extern "C" __global__ void k(int* p) { *p = 1234567; }\n')
        done = self.quern("compile", "k.cu", remote=f"unix:/nonexistent/sock,http://127.0.0.1:1 {busy.url} {self.url}")
        self.assertEqual((self.runs() - runs, done.stderr, len(busy.requests)), (1, "", 1))
        busy.close()

    def test_without_a_server_it_compiles_here_with_one_warning(self):
        self.write("t.cu", "template <int N> __global__ void k(int* p) { *p = N; }\n")
        self.write("t.case.toml", 'kernel = "t.cu"\n' + "".join(f'[[case]]\nname = "c{n}"\nkernel = "k<{n}>"\nargs = ["zeros(1, int32)"]\nexpect = {{ "#0" = {{ value = [{n}] }} }}\n' for n in (1, 2)))
        done = self.quern("run", "k.cu", "zeros(2, int32)", "--block", "2", remote="unix:/nonexistent/sock")
        self.assertEqual(done.stderr.count("no compile server answers"), 1, done.stderr)
        self.assertIn("unix:/nonexistent/sock", done.stderr)
        self.assertIn("4711", done.stdout)

    def test_machines_that_must_not_compile_say_why_they_cannot(self):
        done = self.quern("compile", "k.cu", remote="unix:/nonexistent/sock", QUERN_REMOTE_ONLY="1", status=1)
        for part in ("cannot compile k.cu", "QUERN_REMOTE_ONLY", "unix:/nonexistent/sock", "No such file"):
            self.assertIn(part, done.stderr)

    def test_a_request_that_no_server_takes_is_compiled_here(self):
        options = ("compile", "k.cu", "--option=--ptxas-options=-v")
        self.assertEqual(self.quern(*options, remote=self.url).stderr, "")
        done = self.quern(*options, remote=self.url, QUERN_REMOTE_ONLY="1", status=1)
        self.assertIn("--ptxas-options=-v", done.stderr)
        self.write("latin.cu", b'// caf\xe9\nextern "C" __global__ void k(int* p) { *p = 1; }\n')
        self.assertEqual(self.quern("compile", "latin.cu", remote=self.url).stderr, "")
        self.write("macro.cu", '#define F "h.h"\n#include F\nextern "C" __global__ void k(int* p) { *p = H; }\n')
        self.write("h.h", "#define H 99\n")
        self.assertIn("99", self.quern("compile", "macro.cu", remote=self.url).stdout)

    def test_servers_that_do_not_do_as_they_should(self):
        ptx = ".version 8.0"
        for answer in (b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", http(200, "<html>"), http(200, "{}"),
                       http(200, json.dumps({"key": "k", "ptx": ptx, "entries": [{"name": "k"}]})), http(500, "oops"), http(404, "{}"), http(301, "", Location="http://x/"),
                       b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 1000 + b"\r\n", b"x" * 200_000):
            fake = FakeServer(answer)
            done = self.quern("compile", "k.cu", remote=fake.url, QUERN_REMOTE_TIMEOUT="1")
            self.assertIn("4711", done.stdout)
            self.assertEqual(done.stderr.count("no compile server answers"), 1, (answer, done.stderr))
            fake.close()
        slow = FakeServer()
        done = self.quern("compile", "k.cu", remote=slow.url, QUERN_REMOTE_TIMEOUT="0.5")
        self.assertIn("did not answer in time", done.stderr)
        slow.close()

    def is_no_answer(self, bytes_sent, source="k.cu", **environment):
        """An invalid answer is ignored: the source is compiled locally, and one warning reports that."""
        fake = FakeServer(bytes_sent)
        done = self.quern("compile", source, remote=fake.url, QUERN_REMOTE_TIMEOUT="2", **environment)
        self.assertIn("4711", done.stdout)
        self.assertEqual(done.stderr.count("no compile server answers"), 1, (bytes_sent[:300], done.stderr))
        fake.close()
        return done

    def test_an_answer_that_cannot_be_the_result_is_neither_used_nor_kept(self):
        good = self.server.compile((self.folder / "k.cu").read_text()).json
        entry = good["entries"][0]
        parameter = entry["parameters"][0]
        cache = {"cache": "1", "QUERN_CACHE_DIR": str(self.folder / "cache")}
        for wrong in ({"ptx": ""}, {"ptx": "junk"}, {"entries": []}, {"entries": [{**entry, "lowered_name": "other"}]},
                      {"entries": [{**entry, "parameters": [{**parameter, "offset": 8}]}]}, {"entries": [{**entry, "parameters": [{**parameter, "size": 4}]}]},
                      {"entries": [{**entry, "parameters": []}]}, {"ptx": good["ptx"].replace(".target sm_89", ".target sm_120")}, {"protocol": 2}, {"protocol": "1"}):
            self.is_no_answer(http(200, json.dumps({**good, **wrong})), **cache)
            self.quern("cache", "clear", **cache)
        body = json.dumps(good).replace("4711", "1147")
        self.is_no_answer(http(200, body, **{"Quern-Protocol": "2"}))
        self.is_no_answer(http(200, body).replace(b"Quern-Protocol: 1\r\n", b""))
        self.is_no_answer(http(200, body).replace(b"Quern-Protocol", b"Content-Length: 7\r\nQuern-Protocol"))
        fake = FakeServer(http(200, body))
        self.assertIn("1147", self.quern("compile", "k.cu", remote=fake.url).stdout)  # as far as that, it is used
        fake.close()

    def test_what_crashes_a_servers_compiler_is_tried_once_more_and_not_compiled_here(self):
        fake = FakeServer(http(500, json.dumps({"error": {"code": "worker-failed", "message": "it crashed"}}), Connection="close"))
        done = self.quern("compile", "k.cu", remote=fake.url, status=1)
        self.assertEqual((done.stdout, len(fake.requests)), ("", 2))
        self.assertIn("it crashed", done.stderr)
        self.assertIn("unset QUERN_REMOTE", done.stderr)
        fake.close()
        fake = FakeServer(http(500, json.dumps({"error": {"code": "worker-failed", "message": "it crashed"}}), Connection="close"))
        self.assertIn("4711", self.quern("compile", "k.cu", remote=f"{fake.url} {self.url}").stdout)
        fake.close()

    def test_errors_without_a_message_are_no_answer(self):
        for error in ({}, {"code": "compile"}, {"code": "compile", "diagnostics": [{"severity": "warning", "message": "w"}]}, {"code": "bad-request"}):
            self.is_no_answer(http(422, json.dumps({"error": error})))
        self.is_no_answer(http(400, json.dumps({"error": {"code": "bad-request", "message": "no"}})))

    def test_the_time_for_an_answer_holds_while_bytes_keep_coming(self):
        class Endless(FakeServer):
            def serve(self, answer):
                with contextlib.suppress(OSError):
                    each = self.listener.accept()[0]
                    self.kept.append(each)
                    each.recv(1 << 20)
                    each.sendall(answer[0])
                    while True:
                        each.sendall(answer[1])

        head = b"HTTP/1.1 200 OK\r\nQuern-Protocol: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
        for answer in ((head, b"1\r\n \r\n" * 100), (head + b"0\r\n", b"X: y\r\n" * 100), (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100)):
            fake = Endless(answer)
            begin = time.monotonic()
            done = self.quern("compile", "k.cu", remote=fake.url, QUERN_REMOTE_TIMEOUT="1")
            self.assertLess(time.monotonic() - begin, 20)
            self.assertIn("no compile server answers", done.stderr)
            fake.close()

    def test_texts_of_a_server_do_nothing_to_the_terminal(self):
        evil = "a\x1b]0;t\x07b\x1b[2Jc\r\nquern: forged\x9bd\u202ee"
        diagnostic = {"severity": "error", "file": evil, "line": 1, "column": 1, "message": evil, "hint": evil, "source_line": evil, "notes": [{"message": evil}]}
        for answer, status in ((http(422, json.dumps({"error": {"code": "compile", "message": evil, "diagnostics": [diagnostic]}})), 1),
                               *((http(each, json.dumps({"error": {"code": "x", "message": evil}})), 0) for each in (401, 404, 426, 429, 500))):
            fake = FakeServer(answer)
            done = self.quern("compile", "k.cu", remote=fake.url, status=status)
            fake.close()
            for character in "\x1b\x07\r\x9b\u202e":
                self.assertNotIn(character, done.stderr)
            self.assertNotIn("\nquern: forged", done.stderr)

    def test_an_error_of_the_source_with_a_code_of_a_later_version_is_one(self):
        diagnostic = {"file": "k.cu", "line": 1, "column": 1, "severity": "error", "code": "later", "message": "wrong", "notes": [], "hint": ""}
        body = json.dumps({"error": {"code": "compile", "message": "", "diagnostics": [diagnostic]}})
        with contextlib.closing(FakeServer(http(422, body))) as later:
            done = self.quern("compile", "k.cu", "--json", remote=later.url, QUERN_REMOTE_ONLY="1", status=1)
        error = json.loads(done.stdout)["error"]
        self.assertEqual((error["code"], error["diagnostics"][0]["message"]), ("compile", "wrong"))

    def test_a_chunked_answer_is_read(self):
        good = self.server.compile((self.folder / "k.cu").read_text()).body.decode().replace("4711", "1147")
        chunks = "".join(f"{len(part):x};x=y\r\n{part}\r\n" for part in (good[:100], good[100:])) + "0\r\nTrailer: x\r\n\r\n"
        fake = FakeServer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nQuern-Protocol: 1\r\ntransfer-encoding: Chunked\r\n\r\n" + chunks.encode())
        self.assertIn("1147", self.quern("compile", "k.cu", remote=fake.url, QUERN_REMOTE_ONLY="1").stdout)
        fake.close()

    def test_what_a_server_made_is_kept_on_disk(self):
        cache = {"cache": "1", "QUERN_CACHE_DIR": str(self.folder / "cache"), "QUERN_REMOTE_ONLY": "1"}
        first = self.quern("compile", "k.cu", remote=self.url, **cache)
        again = self.quern("compile", "k.cu", remote="unix:/nonexistent/sock", **cache)
        self.assertEqual(first.stdout, again.stdout)
        self.quern("compile", "k.cu", "-D", "X", remote="unix:/nonexistent/sock", status=1, **cache)
        self.assertEqual(self.quern("compile", "k.cu", "-D", "X", remote=self.url, **cache).returncode, 0)

    def test_what_another_toolkit_made_is_not_kept_as_this_ones(self):
        self.write("h.cu", "#include <cuda_fp16.h>\n" + (self.folder / "k.cu").read_text())
        for name, member in (("k.cu", "libraries"), ("k.cu", "quern"), ("h.cu", "libraries"), ("h.cu", "header_contents")):
            answer = self.server.compile((self.folder / name).read_text()).json
            answer["ptx"] = answer["ptx"].replace("4711", "1147")
            answer["toolkit"][member] += "0"
            cache = {"cache": "1", "QUERN_CACHE_DIR": str(self.folder / ("cache-" + name + member))}
            with contextlib.closing(FakeServer(http(200, json.dumps(answer)))) as other:
                self.assertIn("1147", self.quern("compile", name, remote=other.url, **cache).stdout)
                self.assertIn("4711", self.quern("compile", name, **cache).stdout, member)

    def test_what_a_server_with_this_toolkit_made_is_kept_as_this_ones(self):
        self.write("h.cu", "#include <cuda_fp16.h>\n" + (self.folder / "k.cu").read_text())
        for name in ("k.cu", "h.cu"):
            answer = self.server.compile((self.folder / name).read_text()).json
            answer["ptx"] = answer["ptx"].replace("4711", "1147")
            cache = {"cache": "1", "QUERN_CACHE_DIR": str(self.folder / ("cache-" + name))}
            with contextlib.closing(FakeServer(http(200, json.dumps(answer)))) as alike:
                self.quern("compile", name, remote=alike.url, **cache)
            self.assertIn("1147", self.quern("compile", name, **cache).stdout)

    def test_a_machine_without_nvrtc_keeps_what_servers_made(self):
        server = Server("--workers", 1).ready()
        url = "unix:" + server.socket
        away = {"cache": "1", "QUERN_CACHE_DIR": str(self.folder / "cache"), "QUERN_NVRTC": "/nonexistent/libnvrtc.so"}
        self.write("a.h", "#define A 815\n")
        self.write("h.cu", '#include "a.h"\n#include <cuda_fp16.h>\nextern "C" __global__ void k(int* p) { *p = A; }\n')
        first = self.quern("compile", "h.cu", remote=url, **away)
        self.assertEqual((server.stats()["nvrtc_runs"], "815" in first.stdout), (1, True))
        self.assertEqual(self.quern("compile", "h.cu", remote=url, **away).stdout, first.stdout)
        # A server with another toolkit makes it anew, and so does this one once the header is another.
        body = server.compile((self.folder / "k.cu").read_text()).json
        body["toolkit"]["header_contents"] += "0"
        body["ptx"] = body["ptx"].replace("4711", "1147")
        with contextlib.closing(FakeServer(http(200, json.dumps(body), Connection="close"))) as other:
            self.assertIn("1147", self.quern("compile", "h.cu", remote=other.url, **away).stdout)
        self.write("a.h", "#define A 518\n")
        self.assertIn("518", self.quern("compile", "h.cu", remote=url, **away).stdout)
        self.write("a.h", "#define A 815\n")

        def compile_requests():
            return len([each for each in server.events("request") if each["path"] == "/v1/compile"])
        server.wait_for(lambda: compile_requests() >= 5)  # this one, and two for each text of the header, which is sent when asked for
        self.assertEqual(compile_requests(), 5)
        server.stop()
        # No server answers, so the last result is still used.
        self.assertEqual(self.quern("compile", "h.cu", remote=url, **away).stdout, first.stdout)
        self.quern("compile", "h.cu", "-D", "X", remote=url, status=1, **away)

    def test_what_is_too_large_for_the_server_is_compiled_here_with_a_warning(self):
        server = Server("--workers", 1, "--max-source", "8K").ready()
        url = "unix:" + server.socket
        self.write("big.cu", "//" + "x" * 10000 + "\n" + (self.folder / "k.cu").read_text())
        done = self.quern("compile", "big.cu", remote=url)
        self.assertIn("4711", done.stdout)
        self.assertEqual(len(re.findall("too large for the compile server", done.stderr)), 1, done.stderr)
        done = self.quern("compile", "big.cu", remote=url, QUERN_REMOTE_ONLY="1", status=1)
        self.assertIn("QUERN_REMOTE_ONLY", done.stderr)
        server.stop()

    def test_tokens(self):
        token = self.folder / "token"
        token.write_text("0123456789abcdef0123\n")
        token.chmod(0o600)
        server = Server("--workers", 1, "--token-file", token).ready()
        url = "unix:" + server.socket
        self.quern("compile", "k.cu", remote=url, QUERN_REMOTE_ONLY="1", QUERN_REMOTE_TOKEN_FILE=str(token))
        done = self.quern("compile", "k.cu", remote=url, QUERN_REMOTE_ONLY="1", status=1)
        self.assertIn("bearer token", done.stderr)
        server.stop()

    def test_tls(self):
        def openssl(*words):
            subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=self.folder)
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl("req", "-x509", *key, "-keyout", "key", "-out", "crt", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2")
        server = Server("--workers", 1, "--listen", "tcp:127.0.0.1:0", "--tls-cert", self.folder / "crt", "--tls-key", self.folder / "key").ready()
        port = next(each["address"] for each in server.events("listening") if each["address"].startswith("tcp:")).rsplit(":", 1)[1]
        for host in ("localhost", "127.0.0.1"):
            self.quern("compile", "k.cu", remote=f"https://{host}:{port}", QUERN_REMOTE_ONLY="1", QUERN_REMOTE_CA=str(self.folder / "crt"))
        done = self.quern("compile", "k.cu", remote=f"https://localhost:{port}", QUERN_REMOTE_ONLY="1", status=1)
        self.assertIn("certificate verify failed", done.stderr)
        openssl("req", "-x509", *key, "-keyout", "key2", "-out", "crt2", "-subj", "/CN=elsewhere", "-addext", "subjectAltName=DNS:elsewhere", "-days", "2")
        other = Server("--workers", 1, "--listen", "tcp:127.0.0.1:0", "--tls-cert", self.folder / "crt2", "--tls-key", self.folder / "key2").ready()
        port = next(each["address"] for each in other.events("listening") if each["address"].startswith("tcp:")).rsplit(":", 1)[1]
        done = self.quern("compile", "k.cu", remote=f"https://localhost:{port}", QUERN_REMOTE_ONLY="1", QUERN_REMOTE_CA=str(self.folder / "crt2"), status=1)
        self.assertIn("certificate verify failed", done.stderr)
        server.stop()
        other.stop()

    def test_a_server_that_cannot_be_meant_is_wrong_usage(self):
        for remote in ("nonsense", "ftp://x", "http://", "http://host:port", " , "):
            done = self.quern("compile", "k.cu", remote=remote, status=2)
            self.assertIn("compile server", done.stderr)


if __name__ == "__main__":
    serving.PROGRAM = sys.argv.pop(1)
    QUERN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
