#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md against a real server process.

usage: serve_test.py QUERN_SERVE [-v] [TEST...]
"""
import base64
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import server as serving
from server import KERNEL, Server, ServerCase


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Protocol(ServerCase):
    def test_cuda_compiles_to_ptx_with_its_kernels(self):
        answer = self.server.compile('template <class T> __global__ void scale(T* x, float a) { x[0] *= a; }', names=["scale<int>"])
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.headers["Quern-Cache"], "none")
        self.assertEqual(answer.headers["Quern-Protocol"], "1")
        [entry] = answer.json["entries"]
        self.assertEqual(entry["name"], "scale<int>")
        self.assertIn(".entry " + entry["lowered_name"], answer.json["ptx"])
        self.assertEqual([(p["type"], p["offset"], p["size"], p["pointer"]) for p in entry["parameters"]], [("int*", 0, 8, True), ("float", 8, 4, False)])
        self.assertIn(".target sm_89", answer.json["ptx"])
        self.assertRegex(answer.json["toolkit"]["digest"], "^[0-9a-f]{64}$")

    def test_python_compiles_with_signature_and_constants(self):
        source = "from numba import cuda\nN = 1\n@cuda.jit\ndef k(x):\n    x[0] = N\n"
        constant = {"name": "N", "dtype": "int64", "shape": [], "data": base64.b64encode((4711).to_bytes(8, "little")).decode()}
        answer = self.server.compile(source, language="python", kernel="k", signature="float32[::1]", constants=[constant])
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("4711", answer.json["cuda_source"])
        self.assertEqual(len(answer.json["entries"]), 1)

    def test_ptx_passes_through(self):
        ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry go() { ret; }\n"
        answer = self.server.compile(ptx, language="ptx")
        self.assertEqual((answer.status, answer.json["ptx"], answer.json["entries"][0]["name"]), (200, ptx, "go"))

    def test_machine_code_is_an_artifact(self):
        answer = self.server.compile(KERNEL % 5, target={"compute": 89, "sm": 89})
        self.assertEqual(answer.status, 200, answer.body)
        code = answer.json["machine_code"]
        bytes_ = self.server.ask("GET", "/v1/artifact/" + code["sha256"]).body
        self.assertEqual((len(bytes_), hashlib.sha256(bytes_).hexdigest(), bytes_[:4]), (code["bytes"], code["sha256"], b"\x7fELF"))

    def test_a_wrong_source_is_answered_with_its_diagnostics_and_remembered(self):
        for tier in ("none", "memory"):
            answer = self.server.compile("\n__global__ void k(int* p) { *p = nowhere; }")
            self.assertEqual((answer.status, answer.code, answer.headers["Quern-Cache"]), (422, "compile", tier))
            first = answer.json["error"]["diagnostics"][0]
            self.assertEqual((first["severity"], first["file"], first["line"]), ("error", "k.cu", 2))
            self.assertIn("nowhere", first["message"])

    def test_equal_requests_are_one_compile_and_any_difference_is_another(self):
        runs = self.server.stats()["nvrtc_runs"]
        same = {"source": "#define V\n" + KERNEL % 31, "name": "one.cu"}
        variants = [same, {**same, "name": "two.cu"}, {**same, "options": ["-DX=1"]}, {**same, "options": ["-DX=2"]}, {**same, "options": ["-DX=1", "-w"]},
                    {**same, "target": {"compute": 80}}, {**same, "headers": [{"name": "a.h", "text": ""}]}, {**same, "headers": [{"name": "b.h", "text": ""}]},
                    {**same, "headers": [{"name": "a.h", "text": " "}]}, {**same, "names": ["k"]}]
        keys = [self.server.ask("POST", "/v1/compile", json.dumps(each)).json["key"] for each in variants]
        self.assertEqual(len(set(keys)), len(variants))
        self.assertEqual(self.server.stats()["nvrtc_runs"] - runs, len(variants))
        again = [self.server.ask("POST", "/v1/compile", json.dumps(each)) for each in variants]
        self.assertEqual([each.headers["Quern-Cache"] for each in again], ["memory"] * len(variants))
        self.assertEqual([each.json["key"] for each in again], keys)

    def test_headers_are_asked_for_by_digest_once(self):
        text = "#define VALUE 61\n#include \"inner.h\"\n"
        inner = "#define INNER 7\n"
        source = '#include "dir/outer.h"\n' + KERNEL.replace("%d", "VALUE + INNER")
        by_digest = [{"name": "dir/outer.h", "sha256": sha256(text)}, {"name": "dir/inner.h", "sha256": sha256(inner)}]
        answer = self.ask_with_headers(source, by_digest)
        self.assertEqual((answer.status, answer.code), (409, "headers-missing"))
        self.assertEqual(answer.json["error"]["missing"], [sha256(text), sha256(inner)])
        put = self.server.ask("PUT", "/v1/artifact/" + sha256(inner), inner)
        self.assertEqual(put.status, 201)
        answer = self.ask_with_headers(source, by_digest)
        self.assertEqual(answer.json["error"]["missing"], [sha256(text)])
        answer = self.ask_with_headers(source, [{"name": "dir/outer.h", "text": text}, by_digest[1]])
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("68", answer.json["ptx"])
        again = self.ask_with_headers(source, by_digest)
        self.assertEqual((again.status, again.headers["Quern-Cache"]), (200, "memory"))

    def ask_with_headers(self, source, headers):
        return self.server.ask("POST", "/v1/compile", json.dumps({"source": source, "name": "k.cu", "headers": headers}))

    def test_artifacts(self):
        digest = sha256("some text")
        self.assertEqual(self.server.ask("GET", "/v1/artifact/" + digest).status, 404)
        self.assertEqual(self.server.ask("PUT", "/v1/artifact/" + digest, "another text").code, "digest-mismatch")
        self.assertEqual(self.server.ask("GET", "/v1/artifact/" + digest).status, 404)
        self.assertEqual([self.server.ask("PUT", "/v1/artifact/" + digest, "some text").status for _ in range(2)], [201, 200])
        got = self.server.ask("GET", "/v1/artifact/" + digest)
        self.assertEqual((got.status, got.body, got.headers["ETag"]), (200, b"some text", f'"{digest}"'))
        self.assertIn("immutable", got.headers["Cache-Control"])
        head = self.server.ask("HEAD", "/v1/artifact/" + digest)
        self.assertEqual((head.status, head.body, head.headers["Content-Length"]), (200, b"", "9"))
        self.assertEqual(self.server.ask("GET", "/v1/artifact/" + digest, headers={"If-None-Match": f'"{digest}"'}).status, 304)
        for path in ("..%2f..%2fetc%2fpasswd", "../../etc/passwd", digest.upper(), digest + "0", ""):
            self.assertEqual(self.server.ask("GET", "/v1/artifact/" + path).status, 404, path)

    def test_request_ids(self):
        given = self.server.compile(KERNEL % 71, headers={"Quern-Request-Id": "my-build.17"})
        self.assertEqual(given.headers["Quern-Request-Id"], "my-build.17")
        # The server answers before it writes the line of the log.
        self.server.wait_for(lambda: any(each["request_id"] == "my-build.17" for each in self.server.events("request")))
        for bad in ("a b", "x" * 65, 'q"}'):
            made = self.server.compile(KERNEL % 71, headers={"Quern-Request-Id": bad}).headers["Quern-Request-Id"]
            self.assertRegex(made, "^[0-9a-f]{16}$")

    def test_what_a_request_may_hold(self):
        good = {"source": KERNEL % 1}
        for wrong, code in (({}, "bad-request"), ([], "bad-request"), ({"source": 1}, "bad-request"), ({**good, "sourse": ""}, "unknown-field"),
                            ({**good, "language": "fortran"}, "bad-request"), ({**good, "target": {"compute": -1}}, "bad-request"),
                            ({**good, "target": {"compute": 89, "more": 1}}, "unknown-field"), ({**good, "options": [1]}, "bad-request"),
                            ({**good, "headers": [{"name": "x.h"}]}, "bad-request"), ({**good, "headers": [{"name": "x.h", "sha256": "12"}]}, "bad-request"),
                            ({"source": "a\0b"}, "bad-request"), ({**good, "constants": [{"name": "N", "dtype": "int64", "shape": [2], "data": ""}]}, "bad-request"),
                            ({**good, "constants": [{"name": "N", "dtype": "int64", "shape": [1 << 29, 1 << 29], "data": ""}]}, "bad-request"),
                            ({**good, "names": [[[[[[[[[[]]]]]]]]]]}, "bad-request")):
            answer = self.server.ask("POST", "/v1/compile", json.dumps(wrong))
            self.assertEqual((answer.status, answer.code), (400, code), wrong)
        for text in ("", "{", "nonsense", '{"source": "\xff"}'.encode("latin-1"), "[" * 100000, "[" + "1," * 200000 + "1]"):
            self.assertEqual(self.server.ask("POST", "/v1/compile", text).code, "bad-request")
        self.still_works()

    def test_other_versions_and_paths(self):
        answer = self.server.ask("POST", "/v2/compile", "{}")
        self.assertEqual((answer.status, answer.code, answer.json["error"]["supported"]), (404, "protocol-version", [1]))
        self.assertEqual(self.server.ask("GET", "/v1/compile").status, 405)
        self.assertEqual(self.server.ask("DELETE", "/v1/compile").status, 405)
        self.assertEqual(self.server.ask("GET", "/etc/passwd").status, 404)
        self.assertEqual(self.server.ask("GET", "/" + "a" * 5000).status, 404)
        self.assertEqual(self.server.ask("GET", "/healthz").body, b"ok\n")

    def test_metrics_are_open_metrics(self):
        text = self.server.ask("GET", "/metrics").body.decode()
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertRegex(text, r"(?m)^quern_nvrtc_runs_total \d+$")
        types = {}
        for line in text.splitlines()[:-1]:
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                self.assertNotIn(name, types)
                types[name] = kind
                continue
            self.assertRegex(line, r'^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+$')
            sample = line.split("{")[0].split()[0]
            suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}[types[name]]
            self.assertIn(sample, [name + suffix for suffix in suffixes])

    def test_the_sandbox_is_stated(self):
        sandbox = self.server.stats()["sandbox"]
        self.assertTrue(sandbox["seccomp"] and sandbox["no_new_privileges"] and sandbox["limits"])
        self.assertEqual(sandbox["landlock"] > 0, sandbox["missing"] == "")

    def test_slow_compiles_are_listed_by_their_names(self):
        server = Server("--workers", 1).ready()
        begin = time.time()
        slow = "#include <cooperative_groups.h>\n" + KERNEL % 81
        for source, language, name, request in ((KERNEL % 82, "cuda", "quick.cu", "q"), (slow, "cuda", "slow.cu", "s"), ("nonsense", "cuda", "<script>", "w"),
                                                ("from numba import cuda\n@cuda.jit\ndef k(x):\n    x[0] = 83\n", "python", "long" * 40, "p")):
            server.ask("POST", "/v1/compile", json.dumps({"source": source, "name": name, "language": language, "signature": "float32[::1]" if language == "python" else ""}),
                       {"Quern-Request-Id": request})
        server.compile(slow, name="slow.cu")  # from memory: no compile
        stats = server.stats()
        rows = stats["slowest"]
        self.assertEqual(sorted((row["request_id"], row["name"], row["language"], row["status"]) for row in rows),
                         [("p", "long" * 32, "python", 200), ("q", "quick.cu", "cuda", 200), ("s", "slow.cu", "cuda", 200), ("w", "<script>", "cuda", 422)])
        self.assertEqual([row["ms"] for row in rows], sorted((row["ms"] for row in rows), reverse=True))
        self.assertEqual(rows[0]["name"], "slow.cu")
        for row in rows:
            self.assertTrue(begin - 1 <= row["time_s"] <= time.time() + 1 and 0 < row["ms"] < 1e3 * (time.time() - begin), row)
        self.assertNotIn("nonsense", json.dumps(stats))
        self.assertEqual(stats["state"], "ready")
        self.assertTrue(begin - 60 < stats["started_s"] <= stats["time_s"] <= time.time())
        self.assertAlmostEqual(stats["uptime_s"], stats["time_s"] - stats["started_s"], delta=1)
        server.stop()

    def test_keep_alive(self):
        connection = self.server.connection()
        for i in range(20):
            self.assertEqual(self.server.compile(KERNEL % (i % 3), connection).status, 200)
        connection.close()


class Whole(unittest.TestCase):
    """Each test has a separate server: start, reload, end."""

    def test_a_worker_ends_with_its_server(self):
        server = Server("--workers", 1).ready()
        [worker] = server.workers()
        server.process.kill()
        server.process.wait()
        server.wait_for(lambda: not os.path.exists(f"/proc/{worker}"), 10)
        server.stop()

    def test_requests_in_progress_are_answered_at_the_end(self):
        server = Server("--workers", 1).ready()
        answers = []
        slow = "#include <cooperative_groups.h>\n" + KERNEL
        threads = [threading.Thread(target=lambda i=i: answers.append(server.compile(slow % i))) for i in range(4)]
        for thread in threads:
            thread.start()
        server.wait_for(lambda: (stats := server.stats())["workers"]["busy"] + stats["queue_length"] == 4)
        server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        self.assertEqual([each.status for each in answers], [200] * 4)
        self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(server.socket))

    def test_results_outlive_the_server(self):
        with tempfile.TemporaryDirectory() as cache:
            request = {"target": {"compute": 89, "sm": 89}}
            first = Server("--workers", 1, env={"QUERN_CACHE_DIR": cache}).ready()
            made = first.compile(KERNEL % 1, **request)
            wrong = first.compile("nonsense")
            first.stop()
            second = Server("--workers", 1, env={"QUERN_CACHE_DIR": cache}).ready()
            for tier in ("disk", "memory"):
                again = second.compile(KERNEL % 1, **request)
                self.assertEqual((again.status, again.headers["Quern-Cache"], again.body), (200, tier, made.body))
                again_wrong = second.compile("nonsense")
                self.assertEqual((again_wrong.status, again_wrong.headers["Quern-Cache"], again_wrong.body), (422, tier, wrong.body))
            code = made.json["machine_code"]
            self.assertEqual(len(second.ask("GET", "/v1/artifact/" + code["sha256"]).body), code["bytes"])
            self.assertEqual((second.stats()["nvrtc_runs"], second.stats()["hits"]["disk"]), (0, 2))
            second.stop()

    def test_without_nvrtc_it_is_not_ready_and_says_why(self):
        server = Server("--workers", 1, env={"QUERN_NVRTC": "/nonexistent/libnvrtc.so"})
        server.wait_for(lambda: server.events("toolkit"))
        answer = server.ask("GET", "/readyz")
        self.assertEqual((answer.status, answer.body), (503, b"no-toolkit\n"))
        answer = server.compile(KERNEL % 1)
        self.assertEqual((answer.status, answer.code), (503, "no-toolkit"))
        self.assertIn("NVRTC", answer.json["error"]["message"])
        server.stop()

    def test_options_come_from_a_file_too(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "serve.toml")
            with open(config, "w") as file:
                file.write(f'listen = ["unix:{folder}/a", "unix:{folder}/b"]\nworkers = 1\nmax-source = "64K"\ncompile-timeout = 7.5\n')
            server = Server("--config", config, listen=False)
            for name in "ab":
                server.socket = os.path.join(folder, name)
                server.ready()
            limits = server.stats()["limits"]
            self.assertEqual((limits["source_bytes"], limits["compile_timeout_s"], server.stats()["workers"]["count"]), (65536, 7.5, 1))
            server.stop()

    def test_wrong_options(self):
        def fails(*options, status, says):
            done = subprocess.run([serving.PROGRAM, *options], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(says, done.stderr)
        fails(status=2, says="--listen")
        fails("--listen", "nonsense", status=1, says="unix:PATH or tcp:HOST:PORT")
        fails("--listen", "tcp:0.0.0.0:0", status=1, says="--token-file")
        fails("--listen", "unix:/nonexistent/folder/sock", status=1, says="No such file")
        fails("--listen", "unix:/tmp/x", "--workers", "many", status=2, says="--workers")
        fails("--listen", "unix:/tmp/x", "--tls-cert", "/dev/null", status=2, says="--tls-key")

    def test_a_socket_in_use_is_kept_and_a_left_one_replaced(self):
        server = Server("--workers", 1).ready()
        done = subprocess.run([serving.PROGRAM, "--listen", "unix:" + server.socket], capture_output=True, text=True, timeout=60)
        self.assertIn("another server listens there", done.stderr)
        self.assertEqual(os.stat(server.socket).st_mode & 0o777, 0o600)
        server.process.kill()
        server.process.wait()
        second = subprocess.Popen([serving.PROGRAM, "--listen", "unix:" + server.socket, "--workers", "1"], stderr=subprocess.DEVNULL)
        server.wait_for(lambda: self.can_connect(server))
        second.terminate()
        self.assertEqual(second.wait(120), 0)
        server.stop()

    def can_connect(self, server):
        with contextlib.closing(server.connection()) as connection, contextlib.suppress(OSError):
            return server.ask("GET", "/healthz", connection=connection).status == 200
        return False


if __name__ == "__main__":
    serving.PROGRAM = sys.argv.pop(1)
    unittest.main()
