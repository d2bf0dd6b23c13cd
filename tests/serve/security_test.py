#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens, TLS, client certificates, and the files that SIGHUP reloads.

usage: security_test.py QUERN_SERVE [-v] [TEST...]
"""
import contextlib
import http.client
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import server as serving
from server import Answer, KERNEL, Server

FIRST = "first-token-0123456789abcdef"
SECOND = "second-token-0123456789abcdef"


def bearer(token):
    return {"Authorization": "Bearer " + token}


class Tokens(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = pathlib.Path(self.folder.name, "tokens")
        self.write(f"# ci\n{FIRST}\n")
        self.server = Server("--workers", 1, "--token-file", self.file).ready()

    def tearDown(self):
        self.server.stop()
        self.folder.cleanup()

    def write(self, text):
        self.file.write_text(text)
        self.file.chmod(0o600)

    def reload(self, event):
        count = len(self.server.events(event))
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_for(lambda: len(self.server.events(event)) > count)

    def status(self, token, path="/v1/stats"):
        return self.server.ask("GET", path, headers=bearer(token) if token else {}).status

    def test_everything_but_health_needs_a_token(self):
        for path in ("/v1/stats", "/metrics", "/v1/artifact/" + "0" * 64, "/other"):
            self.assertEqual(self.status(None, path), 401, path)
            self.assertEqual(self.status(FIRST[:-1], path), 401, path)
        answer = self.server.compile(KERNEL % 1)
        self.assertEqual((answer.status, answer.code, answer.headers["WWW-Authenticate"]), (401, "unauthorised", "Bearer"))
        self.assertEqual(self.server.compile(KERNEL % 1, headers=bearer(FIRST)).status, 200)
        self.assertEqual((self.status(FIRST), self.status(FIRST, "/metrics")), (200, 200))
        self.assertEqual((self.status(None, "/healthz"), self.status(None, "/readyz")), (200, 200))

    def test_tokens_are_replaced_without_a_restart(self):
        self.write(SECOND + "\n")
        self.assertEqual((self.status(FIRST), self.status(SECOND)), (200, 401))
        self.reload("reloaded")
        self.assertEqual((self.status(FIRST), self.status(SECOND)), (401, 200))

    def test_a_broken_token_file_changes_nothing(self):
        for text in ("", "short\n"):
            self.write(text)
            self.reload("reload-failed")
            self.assertEqual((self.status(FIRST), self.status("short")), (200, 401))
        self.write(SECOND + "\n")
        self.file.chmod(0o644)
        self.reload("reload-failed")
        self.assertEqual((self.status(FIRST), self.status(SECOND)), (200, 401))

    def test_tokens_are_not_logged(self):
        self.status(FIRST)
        self.status(SECOND)
        self.assertNotIn("token-0123456789abcdef", self.server.log())

    def test_workers_are_replaced_at_a_reload(self):
        [before] = self.server.workers()
        self.reload("reloaded")
        self.assertEqual(self.server.compile(KERNEL % 2, headers=bearer(FIRST)).status, 200)
        self.assertEqual(self.server.compile(KERNEL % 3, headers=bearer(FIRST)).status, 200)
        self.assertNotEqual(self.server.workers(), [before])


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.authority("ca")
        cls.authority("other")
        cls.certificate("server", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        cls.certificate("renewed", "ca", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        cls.certificate("client", "ca")
        cls.certificate("stranger", "other")
        for kind in ("crt", "key"):
            cls.path("live." + kind).write_bytes(cls.path("server." + kind).read_bytes())
        cls.server = cls.start("--tls-cert", cls.path("live.crt"), "--tls-key", cls.path("live.key"))
        cls.strict = cls.start("--tls-cert", cls.path("server.crt"), "--tls-key", cls.path("server.key"), "--tls-client-ca", cls.path("ca.crt"))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.strict.stop()
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return pathlib.Path(cls.folder.name, name)

    @classmethod
    def openssl(cls, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=cls.folder.name)

    @classmethod
    def authority(cls, name):
        cls.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out", name + ".crt", "-subj", "/CN=" + name, "-days", 2)

    @classmethod
    def certificate(cls, name, authority, extension=None):
        cls.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", name + ".key", "-out", name + ".csr", "-subj", "/CN=" + name)
        cls.path(name + ".ext").write_text((extension or "basicConstraints=CA:FALSE") + "\n")
        cls.openssl("x509", "-req", "-in", name + ".csr", "-CA", authority + ".crt", "-CAkey", authority + ".key", "-CAcreateserial", "-out", name + ".crt", "-days", 2, "-extfile", name + ".ext")

    @classmethod
    def start(cls, *options):
        server = Server("--workers", 1, "--request-timeout", 3, "--listen", "tcp:127.0.0.1:0", *options).ready()
        server.port = int(next(each["address"] for each in server.events("listening") if each["address"].startswith("tcp:")).rsplit(":", 1)[1])
        return server

    def context(self, client=None):
        context = ssl.create_default_context(cafile=str(self.path("ca.crt")))
        if client:
            context.load_cert_chain(self.path(client + ".crt"), self.path(client + ".key"))
        return context

    def ask(self, server, context):
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=20, context=context)
        try:
            connection.request("GET", "/v1/stats")
            return Answer(connection.getresponse()).status, connection.sock
        finally:
            connection.close()

    def test_tls_compiles(self):
        connection = http.client.HTTPSConnection("localhost", self.server.port, timeout=60, context=self.context())
        for i in range(3):
            self.assertEqual(self.server.compile(KERNEL % i + "//" + "x" * 100_000, connection).status, 200)
        connection.close()

    def test_plain_http_is_not_answered(self):
        connection = http.client.HTTPConnection("localhost", self.server.port, timeout=10)
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            connection.request("GET", "/healthz")
            connection.getresponse()
        connection.close()

    def test_a_client_certificate_is_wanted(self):
        self.assertEqual(self.ask(self.strict, self.context("client"))[0], 200)
        for client in (None, "stranger"):
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                self.ask(self.strict, self.context(client))

    def test_a_handshake_that_does_not_end_holds_nothing(self):
        with contextlib.closing(socket.create_connection(("localhost", self.server.port), 20)) as each:
            each.sendall(b"\x16\x03\x01")
            begin = time.monotonic()
            with contextlib.suppress(ConnectionError):
                self.assertEqual(each.recv(1), b"")
            self.assertLess(time.monotonic() - begin, 15)

    def serial(self):
        with socket.create_connection(("localhost", self.server.port)) as plain, self.context().wrap_socket(plain, server_hostname="localhost") as each:
            return each.getpeercert()["serialNumber"]

    def test_a_renewed_certificate_is_read_at_sighup(self):
        before = self.serial()
        for kind in ("crt", "key"):
            self.path("live." + kind).write_bytes(self.path("renewed." + kind).read_bytes())
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_for(lambda: self.server.events("reloaded"))
        after = self.serial()
        self.assertNotEqual(before, after)
        self.path("live.crt").write_text("nonsense")
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_for(lambda: self.server.events("reload-failed"))
        self.assertEqual(self.serial(), after)


if __name__ == "__main__":
    serving.PROGRAM = sys.argv.pop(1)
    unittest.main()
