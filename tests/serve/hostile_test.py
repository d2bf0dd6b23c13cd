#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Malicious sources and clients: each gets an error, reads nothing, and disturbs no other request.

usage: hostile_test.py QUERN_SERVE [-v] [TEST...]
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import sys
import threading
import time
import unittest

import server as serving
from server import KERNEL, Server, ServerCase

SECRET = "root:"  # /etc/passwd begins with it
MEBI = 1 << 20


def includes(levels):
    """Headers of which each includes the next twice: the last one is read 2**levels times."""
    headers = [{"name": f"a{i}.h", "text": f'#include "a{i + 1}.h"\n#include "a{i + 1}.h"\n'} for i in range(levels)]
    return headers + [{"name": f"a{levels}.h", "text": "\n"}]


def endless(number):
    """A source whose compilation does not end; a different one for each number."""
    return {"source": f'// {number}\n#include "a0.h"\n' + KERNEL % number, "headers": includes(64)}


class Client(threading.Thread):
    """Requests one compile; .answer is the answer."""

    def __init__(self, server, **fields):
        super().__init__()
        self.server, self.fields, self.answer = server, fields, None
        self.start()

    def run(self):
        self.answer = self.server.ask("POST", "/v1/compile", json.dumps({"name": "k.cu", **self.fields}))


class Sources(ServerCase):
    OPTIONS = ("--workers", 1, "--compile-timeout", 2, "--worker-memory", "1G", "--max-source", "1M")

    def ask(self, **fields):
        return self.server.ask("POST", "/v1/compile", json.dumps({"name": "k.cu", **fields}))

    def test_endless_includes_end_with_the_time_limit(self):
        begin = time.monotonic()
        answer = self.ask(**endless(1))
        self.assertEqual((answer.status, answer.code), (504, "compile-timeout"))
        self.assertGreaterEqual(time.monotonic() - begin, 2)
        self.still_works()

    def test_a_header_that_includes_itself(self):
        answer = self.ask(source='#include "a.h"\n' + KERNEL % 1, headers=[{"name": "a.h", "text": '#include "a.h"\n'}])
        self.assertIn(answer.status, (422, 500, 504), answer.body)
        self.still_works()

    def test_constexpr_and_template_bombs(self):
        bombs = ("constexpr long f(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i; return s; }\n__device__ constexpr long v = f(1L << 60);\n",
                 "constexpr int f(int n) { return f(n + 1) + f(n + 2); }\n__device__ constexpr int v = f(0);\n",
                 "template <int N> struct T { typename T<N + 1>::type x; };\n__device__ T<0> t;\n",
                 "template <class A, class B> struct P {};\ntemplate <int N, class A> struct T : T<N - 1, P<A, A>>, T<N - 2, P<A, int>> {};\n"
                 "template <class A> struct T<0, A> {}; template <class A> struct T<-1, A> {};\n__device__ T<60, int> t;\n",
                 "__device__ int a[1ull << 62];\n", "(" * 200_000, "__device__ int x = " + "-" * 200_000 + "1;\n")
        for bomb in bombs:
            answer = self.ask(source=bomb + KERNEL % 1)
            self.assertIn(answer.status, (422, 500, 504), (bomb[:60], answer.body[:200]))
        self.still_works()

    def test_no_file_of_the_server_is_read(self):
        direct = ('#include "/etc/passwd"', "#include </etc/passwd>", '# include"/etc/passwd"', '#include "x/../../../../etc/passwd"', '#import "/etc/passwd"',
                  '#if __has_include("/etc/passwd")\n#endif', "#include_next </etc/passwd>", '#embed "/etc/passwd"')
        for line in direct:
            answer = self.ask(source=line + "\n" + KERNEL % 1)
            self.assertEqual((answer.status, answer.code), (422, "include-refused"), line)
        hidden = ('#define F "/etc/passwd"\n#include F', "#define F </etc/passwd>\n#include F", '#inc\\\nlude "/etc/passwd"', '/**/#/**/include/**/"/etc/passwd"',
                  '#include \\\n"/etc/passwd"', '%:include "/etc/passwd"', "#include <./../../../../../../../../etc/passwd>", '#include "etc/passwd"',
                  '#define F "/proc/self/environ"\n#include F', '#define F "/proc/self/maps"\n#include F', '#define F "/dev/stdin"\n#include F',
                  f'#define F "{os.path.expanduser("~/.bashrc")}"\n#include F', f'#define F "{self.server.log_path}"\n#include F')
        for line in hidden:
            answer = self.ask(source=line + "\n" + KERNEL % 1)
            self.assertEqual(answer.status, 422, (line, answer.body))
            self.assertNotIn(SECRET.encode(), answer.body, line)
            self.assertNotIn(b"request_id\\\":\\\"", answer.body, line)
        with_header = self.ask(source='#include "h.h"\n', headers=[{"name": "h.h", "text": '#include "/etc/passwd"\n'}])
        self.assertEqual((with_header.status, with_header.code, with_header.json["error"]["diagnostics"][0]["file"]), (422, "include-refused", "h.h"))

    def test_headers_outside_the_folder_are_found_in_the_request_alone(self):
        headers = [{"name": "../inc/a.h", "text": '#include "../b.h"\n'}, {"name": "../b.h", "text": "#define N 17\n"}, {"name": "/abs/c.h", "text": "#define M 5\n"}]
        source = '#include "../inc/a.h"\n#include "/abs/c.h"\n' + KERNEL.replace("%d", "N * 100 + M")
        answer = self.ask(source=source, headers=headers)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("1705", answer.json["ptx"])
        self.assertEqual(self.ask(source=source, headers=headers[1:]).code, "include-refused")

    def test_the_name_of_a_source_opens_nothing(self):
        answer = self.ask(source='#include "passwd"\n', name="/etc/k.cu")
        self.assertEqual(answer.status, 422)
        self.assertNotIn(SECRET.encode(), answer.body)

    def test_options_that_name_files_are_refused(self):
        for options in (["-I/etc"], ["-I", "/etc"], ["--include-path=/etc"], ["-include-path", "/etc"], ["--pre-include=/etc/passwd"], ["--pre-include", "/etc/passwd"],
                        ["-include", "/etc/passwd"], ["-isystem", "/etc"], ["--options-file=/etc/passwd"], ["-optf", "/etc/passwd"], ["@/etc/passwd"], ["/etc/passwd"],
                        ["--pch"], ["--create-pch=/tmp/x"], ["--use-pch=/tmp/x"], ["--pch-dir=/tmp"], ["--time=/tmp/x"], ["--fdevice-time-trace=/tmp/x"],
                        ["--ptxas-options=-o /tmp/x"], ["-Xptxas", "-o=/tmp/x"], ["--dlink-time-opt"], ["--optix-ir"], ["--gpu-architecture=sm_90"], ["-DX=1", "-I/etc"],
                        ["-D", "X", "--pre-include=/etc/passwd"], ["--maxrregcount", "--pre-include=/etc/passwd"], ["--split-compile=64"], [""], ["-"], ["--"]):
            answer = self.ask(source=KERNEL % 1, options=options)
            self.assertEqual((answer.status, answer.code), (400, "option-refused"), options)
        answer = self.ask(source=KERNEL % 1, options=["-DX=1", "-D", "Y", "--use_fast_math", "--maxrregcount=32", "--std=c++17", "-lineinfo", "--fmad=false"])
        self.assertEqual(answer.status, 200, answer.body)

    def test_sizes(self):
        self.assertEqual(self.ask(source="//" + "x" * MEBI).status, 413)
        self.assertEqual(self.ask(source="", headers=[{"name": f"{i}.h", "text": "x" * (MEBI // 4)} for i in range(5)]).status, 413)
        self.assertEqual(self.server.ask("PUT", "/v1/artifact/" + "0" * 64, "x" * (MEBI + 1)).status, 413)
        self.assertEqual(self.ask(source="//" + "x" * (MEBI - 100) + "\n" + KERNEL % 2).status, 200)


class Clients(ServerCase):
    # Without precompiled headers, so that no worker is replaced while it is observed.
    OPTIONS = ("--workers", 2, "--request-timeout", 2, "--max-queue", 4, "--max-source", "1M", "--compile-timeout", 20, "--idle-timeout", 3,
               "--precompiled-headers", 0)

    def raw(self):
        each = socket.socket(socket.AF_UNIX)
        each.settimeout(20)
        each.connect(self.server.socket)
        return each

    def answer_to(self, text):
        with contextlib.closing(self.raw()) as each:
            each.sendall(text)
            answer = each.recv(65536)
            while b"\r\n\r\n" in answer and len(answer) < answer.index(b"\r\n\r\n") + 4 + int(re.search(rb"Content-Length: (\d+)", answer)[1]):
                answer += each.recv(65536)
            return answer

    def busy(self):
        stats = self.server.stats()
        return stats["workers"]["busy"], stats["queue_length"]

    def test_bodies_of_100_mb(self):
        block = b"x" * MEBI
        with contextlib.closing(self.raw()) as each:
            each.sendall(b"POST /v1/compile HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (100 * MEBI))
            with contextlib.suppress(OSError):
                for _ in range(100):
                    each.sendall(block)
            self.assertIn(b" 413 ", each.recv(65536))
        with contextlib.closing(self.raw()) as each:
            each.sendall(b"POST /v1/compile HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(100):
                    each.sendall(b"%x\r\n%s\r\n" % (MEBI, block))
            self.assertIn(b" 413 ", each.recv(65536))
        self.still_works()

    def test_slow_clients_are_dropped_and_others_served(self):
        slow = [self.raw() for _ in range(100)]
        for i, each in enumerate(slow):
            each.sendall(b"POST /v1/compile HTTP/1.1\r\nX: " if i % 2 else b"POST /v1/compile HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        begin = time.monotonic()
        ended = 0
        while time.monotonic() - begin < 4:
            for each in slow:
                with contextlib.suppress(OSError):
                    each.send(b"x")
            self.still_works()
            time.sleep(0.3)
        for i, each in enumerate(slow):
            each.settimeout(10)
            with contextlib.suppress(ConnectionError):
                received = each.recv(65536)
                ended += 1
                self.assertIn(b" 408 ", received)
            each.close()
        self.assertGreater(ended, 90)
        self.server.wait_for(lambda: self.server.stats()["connections"] <= 1, 10)

    def test_idle_connections_are_closed(self):
        each = self.raw()
        self.assertEqual(each.recv(1), b"")
        each.close()

    def test_a_client_that_does_not_take_its_answer(self):
        source = "".join(f'extern "C" __global__ void k{i}(int* p) {{ p[{i}] = {i}; }}\n' for i in range(3000))
        body = json.dumps({"source": source, "name": "many.cu"}).encode()
        self.assertEqual(self.server.ask("POST", "/v1/compile", body).status, 200)
        many = [self.raw() for _ in range(20)]
        for each in many:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.sendall(b"POST /v1/compile HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.still_works()
        self.server.wait_for(lambda: self.server.stats()["connections"] <= 1, 20)
        for each in many:
            each.close()

    def test_requests_that_are_not_well_formed(self):
        for text, status in ((b"nonsense\r\n\r\n", 400), (b"GET / HTTP/9.9\r\n\r\n", 400), (b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 40000 + b"\r\n\r\n", 431),
                             (b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 10000 + b"\r\n", 431), (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 431),
                             (b"POST /v1/compile HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400),
                             (b"POST /v1/compile HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
                             (b"POST /v1/compile HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
                             (b"POST /v1/compile HTTP/1.1\r\nContent-Length: 4, 999\r\n\r\n{}{}", 400),
                             (b"POST /v1/compile HTTP/1.1\r\nContent-Length: +4\r\n\r\n{}{}", 400),
                             (b"POST /v1/compile HTTP/1.1\r\nContent-Length: 4 x\r\n\r\n{}{}", 400),
                             (b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n", 431), (b"GET /v1/stats HTTP/1.1\r\nRange: bytes=0-10\r\n\r\n", 400),
                             (b"GET /v1/stats HTTP/1.1\r\nRange: bytes=9-1\r\n\r\n", 400),
                             (b"POST /v1/compile HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 5\r\n\r\n--x--", 400), (b"POST /v1/compile HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415),
                             (b"GET /v1/stats HTTP/1.1\r\nRange: bytes=" + b"0-0," * 500 + b"0-0\r\n\r\n", 400)):
            answer = self.answer_to(text)
            self.assertIn(b" %d " % status, answer.split(b"\r\n")[0], text[:60])
            self.assertIn(b'{"error":{"code":"', answer, text[:60])
            self.assertIn(b"}", answer[-2:], text[:60])
        self.still_works()

    def test_the_rest_of_a_request_that_cannot_be_read_is_no_request(self):
        smuggled = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        for text in (b"FOO / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(smuggled), b"GET /healthz\r\n\r\n", b"GET / HTTP/1.1\nHost: x\n\n",
                     b"GET /healthz HTTP/1.1\r\nX: " + b"y" * 40000 + b"\r\n\r\n", b"POST /v1/compile HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
                     b"POST /v1/compile HTTP/1.1\r\nContent-Length: 2, 9\r\n\r\n{}"):
            with contextlib.closing(self.raw()) as each:
                each.sendall(text + smuggled)
                received = b""
                with contextlib.suppress(ConnectionResetError):
                    while block := each.recv(65536):
                        received += block
            self.assertEqual(received.count(b"HTTP/1.1 "), 1, (text[:60], received))
            self.assertNotIn(b" 200 ", received)
        self.still_works()

    def test_two_members_of_one_name_are_refused(self):
        answer = self.server.ask("POST", "/v1/compile", '{"source": "", "options": ["-DA"], "options": []}')
        self.assertEqual((answer.status, answer.code), (400, "bad-request"), answer.body)

    def test_a_refused_body_is_not_read_as_the_next_request(self):
        text = b"POST /v1/compile HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 34\r\n\r\nGET /v1/smuggled HTTP/1.1\r\nA: b\r\n\r\n"
        with contextlib.closing(self.raw()) as each:
            each.sendall(text)
            received = b""
            while block := each.recv(65536):
                received += block
        self.assertEqual(received.count(b"HTTP/1.1 "), 1)

    def test_the_queue_is_bounded(self):
        many = [self.leave(endless(100 + i)) for i in range(6)]  # two work, four wait
        self.server.wait_for(lambda: self.busy() == (2, 4))
        answer = self.server.compile(KERNEL % 90001)
        self.assertEqual((answer.status, answer.code, answer.headers["Retry-After"]), (429, "busy", "1"))
        for each in many:
            each.close()
        self.server.wait_for(lambda: self.busy() == (0, 0), 10)
        self.still_works()

    def test_a_burst_that_free_workers_can_take_is_not_refused(self):
        server = Server("--workers", 8, "--max-queue", 1, "--compile-timeout", 60, "--precompiled-headers", 0).ready()
        with contextlib.ExitStack() as open_connections:
            connections = [open_connections.enter_context(contextlib.closing(server.connection())) for _ in range(9)]
            for each in connections:
                each.connect()
            for number, each in enumerate(connections):
                each.request("POST", "/v1/compile", json.dumps({"name": "k.cu", **endless(700 + number)}))
            server.wait_for(lambda: (server.stats()["workers"]["busy"], server.stats()["queue_length"]) == (8, 1))
            self.assertEqual(server.compile(KERNEL % 90002).code, "busy")
        server.stop()

    def test_a_worker_killed_during_a_compile_costs_that_request_alone(self):
        doomed = Client(self.server, **endless(200))
        self.server.wait_for(lambda: self.busy()[0] == 1)
        before = self.cpu_times()
        time.sleep(0.5)
        busiest = max(self.server.workers(), key=lambda worker: self.cpu_times()[worker] - before.get(worker, 0))
        others = [Client(self.server, source=KERNEL % (20000 + i)) for i in range(3)]
        os.kill(busiest, signal.SIGKILL)
        doomed.join(20)
        for each in others:
            each.join(20)
            self.assertEqual(each.answer.status, 200, each.answer.body)
        self.assertEqual((doomed.answer.status, doomed.answer.code), (500, "worker-failed"))
        self.assertIn("signal 9", doomed.answer.json["error"]["message"])
        self.still_works()

    def cpu_times(self):
        return {pid: sum(map(int, pathlib.Path(f"/proc/{pid}/stat").read_text().split()[13:15])) for pid in self.server.workers()}

    def test_crashes_give_workers_another_layout_of_memory(self):
        [nursery] = self.server.children("quern-nursery")
        crashed = self.server.stats()["compiles"]["crashed"]
        number = 5000
        while self.server.stats()["compiles"]["crashed"] < crashed // 16 * 16 + 16:
            doomed = Client(self.server, **endless(number := number + 1))
            while doomed.is_alive():
                for worker in self.server.workers():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
                doomed.join(0.1)
        self.still_works()
        self.server.wait_for(lambda: self.server.children("quern-nursery") not in ([nursery], []))

    def test_a_worker_killed_while_it_waits_costs_no_request(self):
        for number in range(4):
            for worker in self.server.workers():
                os.kill(worker, signal.SIGKILL)
            time.sleep(0.1)
            answer = self.server.compile(KERNEL % (6000 + number))
            self.assertEqual(answer.status, 200, answer.body)

    def test_files_that_exist_look_like_files_that_do_not(self):
        def seen(path):
            has = self.server.compile(f'#define F "{path}"\n#if __has_include(F)\n#error yes\n#else\n#error no\n#endif\n')
            reads = self.server.compile(f'#define F "{path}"\n#include F\n')
            messages = [each["message"].replace(path, "PATH") for answer in (has, reads) for each in answer.json["error"]["diagnostics"]]
            return has.status, reads.status, messages
        unknown = seen("/etc/there-is-none")
        self.assertIn("no", "".join(unknown[2]))
        for path in ("/etc/passwd", "/etc", "/proc/self/status", "/dev/null", self.server.log_path):
            self.assertEqual(seen(path), unknown, path)

    def leave(self, fields):
        """Requests a compile, and closes the connection when it is running or queued."""
        body = json.dumps({"name": "k.cu", **fields}).encode()
        each = self.raw()
        before = self.server.stats()["connections"]
        each.sendall(b"POST /v1/compile HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertGreaterEqual(before, 1)
        return each

    def test_clients_that_go_free_their_place(self):
        abandoned = self.server.stats()["compiles"]["abandoned"]
        gone = [self.leave(endless(300 + i)) for i in range(6)]
        self.server.wait_for(lambda: self.busy() == (2, 4))
        for each in gone:
            each.close()
        self.server.wait_for(lambda: self.busy() == (0, 0), 10)
        self.assertEqual(self.server.stats()["compiles"]["abandoned"] - abandoned, 6)
        self.still_works()

    def test_a_compile_goes_on_while_anyone_waits_for_it(self):
        fields = {"source": "#include <cooperative_groups.h>\n// goes on\n" + KERNEL % 400}
        runs = self.server.stats()["nvrtc_runs"]
        first = self.leave(fields)
        self.server.wait_for(lambda: self.server.stats()["nvrtc_runs"] == runs + 1)
        second = Client(self.server, **fields)
        time.sleep(0.05)
        first.close()
        second.join()
        self.assertEqual((second.answer.status, self.server.stats()["nvrtc_runs"]), (200, runs + 1))


class Memory(ServerCase):
    LIMIT = 700 * MEBI
    # Without precompiled headers, so that no worker is replaced while it is observed.
    OPTIONS = ("--workers", 1, "--worker-memory", LIMIT, "--compile-timeout", 100, "--precompiled-headers", 0)

    def test_a_compile_that_takes_all_memory_ends_its_worker_alone(self):
        [worker] = self.server.workers()
        doomed = Client(self.server, source="__device__ int a[200000000] = {1};\n" + KERNEL % 1)
        peak = 0
        while doomed.is_alive():
            with contextlib.suppress(OSError, IndexError):
                peak = max(peak, int(pathlib.Path(f"/proc/{worker}/status").read_text().split("VmHWM:")[1].split()[0]) * 1024)
            time.sleep(0.02)
        self.assertEqual((doomed.answer.status, doomed.answer.code), (500, "worker-failed"), doomed.answer.body)
        self.assertNotIn("File size", doomed.answer.json["error"]["message"])  # a worker has no file to write to
        self.assertLess(peak, self.LIMIT)
        self.assertGreater(peak, self.LIMIT // 4, "it did not take much memory: the test tests nothing")
        self.still_works()

    def test_an_error_for_lack_of_memory_is_not_the_sources_and_is_not_stored(self):
        source = """template <long N, long M> struct F { static const unsigned v = F<N - 1, M * 2>::v + F<N - 1, M * 2 + 1>::v; };
template <long M> struct F<0, M> { static const unsigned v = M; };
""" + KERNEL % 1 + "__device__ unsigned v = F<18, 1>::v;\n"
        runs = self.server.stats()["nvrtc_runs"]
        for _ in range(2):
            answer = self.server.ask("POST", "/v1/compile", json.dumps({"source": source, "name": "k.cu"}))
            self.assertEqual((answer.status, answer.code), (500, "worker-failed"), answer.body)
        self.assertEqual(self.server.stats()["nvrtc_runs"], runs + 2)
        self.still_works()


class Crowd(ServerCase):
    OPTIONS = ("--workers", 2)

    def test_a_thousand_requests_for_one_new_key_are_one_compile(self):
        runs = self.server.stats()["nvrtc_runs"]
        body = json.dumps({"source": "#include <cooperative_groups.h>\n" + KERNEL % 1000, "name": "k.cu"})
        connections = [self.server.connection() for _ in range(1000)]
        for each in connections:
            each.connect()
        for each in connections:
            each.request("POST", "/v1/compile", body)
        answers = [serving.Answer(each.getresponse()) for each in connections]
        for each in connections:
            each.close()
        self.assertEqual({each.status for each in answers}, {200})
        self.assertEqual(len({each.json["key"] for each in answers}), 1)
        self.assertEqual(self.server.stats()["nvrtc_runs"] - runs, 1)

    def test_connections_are_bounded(self):
        server = Server("--workers", 1, "--max-connections", 8).ready()
        many = []
        for _ in range(8):
            many.append(socket.socket(socket.AF_UNIX))
            many[-1].connect(server.socket)
        server.wait_for(lambda: self.is_refused(server), 10)
        for each in many:
            each.close()
        server.wait_for(lambda: not self.is_refused(server), 20)
        server.stop()

    def is_refused(self, server):
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as each:
            each.connect(server.socket)
            with contextlib.suppress(ConnectionError):
                each.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                return b" 503 " in each.recv(65536)
            return True


if __name__ == "__main__":
    serving.PROGRAM = sys.argv.pop(1)
    unittest.main()
