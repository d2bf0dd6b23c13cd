#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Servers that share a store: real Redis and nginx that are stopped, slow or contain wrong values; servers that are killed.

usage: store_test.py QUERN_SERVE [-v] [TEST...]
"""
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import server as serving
import stores
from server import KERNEL, Server
from stores import HttpCache, Many, Nginx, Redis, SlowProxy, slow_kernel, write_secret

PATIENT = ("--store-timeout", 2)  # tests that count compiles must not depend on how busy this machine is


class StoreCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="quern-store-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.key = stores.new_key(self.folder)

    def start(self, store):
        self.addCleanup(store.close)
        return store.start()

    def serve(self, url, *options, key=True):
        server = Server("--workers", 1, "--store", url, *(["--store-key", self.key] if key else []), *options)
        self.addCleanup(server.stop)
        return server

    def serve_many(self, count, url, *options):
        servers = [self.serve(url, *options) for _ in range(count)]
        for each in servers:
            each.ready()
            self.wait_up(each)
        return servers

    def store_of(self, server):
        return server.stats()["store"]

    def wait_up(self, server, up=True):
        server.wait_for(lambda: self.store_of(server)["up"] == up)

    def wait_put(self, server, count):
        server.wait_for(lambda: self.store_of(server)["puts"]["ok"] >= count)

    def stored(self, server, sources):
        """The answer for the first of these sources that the server could put into its store. A put may be late on a busy machine."""
        for source in sources:
            before = self.store_of(server)["puts"]
            made = server.compile(source)
            self.check(made, "none")
            server.wait_for(lambda: self.store_of(server)["puts"] != before or not self.store_of(server)["up"])
            if self.store_of(server)["puts"]["ok"] > before["ok"]:
                return source, made
            self.wait_up(server)
        self.fail("no value was stored")

    def runs(self, servers):
        return [each.stats()["nvrtc_runs"] for each in servers]

    def seconds(self, server):
        text = server.ask("GET", "/metrics").body.decode()
        return float(re.search(r"(?m)^quern_store_seconds_sum (\S+)$", text).group(1))

    def check(self, answer, tier):
        self.assertEqual((answer.status, answer.headers["Quern-Cache"]), (200, tier), answer.body)


class Engines(StoreCase):
    """A server uses a value that another one stored, and no secret is visible."""

    def share(self, store, url, *options, secret=None):
        one, other = self.serve_many(2, url, *options, *PATIENT)
        made = one.compile(KERNEL % 11)
        self.check(made, "none")
        self.wait_put(one, 1)
        got = other.compile(KERNEL % 11)
        self.check(got, "store")
        self.assertEqual(got.body, made.body)
        self.check(other.compile(KERNEL % 11), "memory")
        wrong = one.compile("nonsense")
        self.assertEqual((wrong.status, wrong.headers["Quern-Cache"]), (422, "none"))
        self.wait_put(one, 2)
        again = other.compile("nonsense")
        self.assertEqual((again.status, again.headers["Quern-Cache"], again.body), (422, "store", wrong.body))
        code = one.compile(KERNEL % 12, target={"compute": 89, "sm": 89}).json["machine_code"]
        self.wait_put(one, 3)
        self.check(other.compile(KERNEL % 12, target={"compute": 89, "sm": 89}), "store")
        self.assertEqual(len(other.ask("GET", "/v1/artifact/" + code["sha256"]).body), code["bytes"])
        self.assertEqual(self.runs([one, other]), [3, 0])
        if store:
            self.assertEqual(len(store.values()), 3)
            one.wait_for(lambda: not store.locks())
        if secret:
            for server in (one, other):
                shown = server.log() + json.dumps(server.stats()) + server.ask("GET", "/metrics").body.decode()
                shown += pathlib.Path(f"/proc/{server.process.pid}/cmdline").read_text()
                self.assertNotIn(secret, shown)
        return one, other

    def test_redis_on_a_socket(self):
        store = self.start(Redis())
        one, _ = self.share(store, store.url)
        self.assertEqual(self.store_of(one)["address"], store.url)

    def test_redis_on_tcp_with_a_password_in_a_file(self):
        port = stores.free_port()
        password = write_secret(os.path.join(self.folder, "password"), "pass-word-17")
        self.start(Redis("--port", port, "--requirepass", "pass-word-17"))
        self.share(None, f"redis://127.0.0.1:{port}/3", "--store-password-file", password, secret="pass-word-17")

    def test_redis_with_an_acl_user_over_tls(self):
        port = stores.free_port()
        authority, certificate, key = stores.make_certificates(self.folder)
        store = self.start(Redis("--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", authority,
                                 "--tls-auth-clients", "no"))
        # Only the commands and keys that docs/service.md lists.
        store.ask("ACL", "SETUSER", "quern", "on", ">se/cret:18", "~quern:*", "+ping", "+get", "+set", "+eval", "+del", "+pexpire")
        self.share(store, f"rediss://quern:se%2fcret%3a18@localhost:{port}", "--store-ca", authority, secret="cret")

    def test_redis_over_tls_with_another_authority_is_not_used(self):
        port = stores.free_port()
        authority, certificate, key = stores.make_certificates(self.folder)
        self.start(Redis("--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", authority, "--tls-auth-clients", "no"))
        server = self.serve(f"rediss://localhost:{port}").ready()
        server.wait_for(lambda: server.events("store-down"))
        self.assertIn("certificate verify failed", server.events("store-down")[0]["reason"])
        self.check(server.compile(KERNEL % 1), "none")

    def test_a_wrong_password_is_reported_once_and_not_shown(self):
        store = self.start(Redis("--requirepass", "right-one"))
        server = self.serve("redis+unix://:wrong-one@" + store.socket).ready()
        server.wait_for(lambda: server.events("store-down"))
        self.check(server.compile(KERNEL % 1), "none")
        [event] = server.events("store-down")
        self.assertIn("WRONGPASS", event["reason"])
        self.assertNotIn("wrong-one", server.log())

    def test_a_webdav_folder(self):
        store = self.start(Nginx())
        self.share(store, store.url)

    def test_a_webdav_folder_with_a_password(self):
        store = self.start(Nginx(password="dav-pass-19"))
        self.share(store, store.url.replace("//", "//quern:dav-pass-19@"), secret="dav-pass-19")

    def test_a_webdav_folder_without_collections_shares_without_locks(self):
        store = self.start(Nginx(methods="PUT DELETE"))
        one, _ = self.share(store, store.url)
        self.assertEqual(self.store_of(one)["locks"], {"acquired": 0, "held": 0, "unavailable": 0})

    def test_an_http_cache(self):
        store = self.start(HttpCache())
        self.share(store, store.url)
        entry = store.blobs[store.values()[0]]
        self.assertRegex(entry, rb"^\x12.\n\x05quern\x12.\n@[0-9a-f]{64}\x10")


class OneCompile(StoreCase):
    """1,000 requests for one new key, on one server and on three that share a store."""

    COUNT = 1000

    def burst(self, servers, source):
        body = json.dumps({"source": source, "name": "one.cu"}).encode()
        return Many([(servers[i % len(servers)].socket, body) for i in range(self.COUNT)])

    def judge(self, answers, servers):
        tiers = collections.Counter(tier for _, tier, _ in answers)
        self.assertEqual({status for status, _, _ in answers}, {200})
        self.assertEqual(len({body for _, _, body in answers}), 1)
        self.assertEqual(sum(self.runs(servers)), 1)
        self.assertEqual((tiers["none"], tiers["store"]), (1, len(servers) - 1), tiers)

    def test_one_server(self):
        server = Server("--workers", 2).ready()
        self.addCleanup(server.stop)
        self.judge(self.burst([server], slow_kernel(1)).answers(), [server])

    def test_three_servers_with_redis(self):
        servers = self.serve_many(3, self.start(Redis()).url, *PATIENT)
        self.judge(self.burst(servers, slow_kernel(2)).answers(), servers)

    def test_three_servers_with_a_webdav_folder(self):
        servers = self.serve_many(3, self.start(Nginx()).url, *PATIENT)
        self.judge(self.burst(servers, slow_kernel(3)).answers(), servers)

    def kill_during_compile(self, store, source):
        servers = self.serve_many(3, store.url, *PATIENT, "--store-lease", 2)
        burst = self.burst(servers, source)
        servers[0].wait_for(lambda: any(each.stats()["workers"]["busy"] for each in servers))
        [victim] = [each for each in servers if each.stats()["workers"]["busy"]]
        others = [each for each in servers if each is not victim]
        for each in others:
            each.wait_for(lambda each=each: self.store_of(each)["waiting"] == 1)
        victim.process.kill()
        victim.process.wait()
        killed = time.monotonic()
        answers = [each for each in burst.answers() if each is not None]
        seconds = time.monotonic() - killed
        others[0].wait_for(lambda: not store.locks())
        self.assertGreaterEqual(len(answers), self.COUNT * 2 // 3)
        self.judge(answers, others)
        # Freed by the lease of 2 s, not by the patience of 60 s (--compile-timeout), however busy this machine is.
        self.assertLess(seconds - json.loads(answers[0][2])["compile_ms"] / 1e3, 30)

    def test_a_server_of_three_is_killed_with_redis(self):
        self.kill_during_compile(self.start(Redis()), slow_kernel(4, 200))

    def test_a_server_of_three_is_killed_with_a_webdav_folder(self):
        self.kill_during_compile(self.start(Nginx()), slow_kernel(5, 200))

    def test_two_servers_of_three_are_killed_with_a_webdav_folder(self):
        store = self.start(Nginx())
        servers = self.serve_many(3, store.url, *PATIENT, "--store-lease", 2)
        burst = self.burst(servers, slow_kernel(9, 200))
        for _ in range(2):
            servers[0].wait_for(lambda: any(each.stats()["workers"]["busy"] for each in servers))
            [victim] = [each for each in servers if each.stats()["workers"]["busy"]]
            victim.process.kill()
            victim.process.wait()
            servers.remove(victim)
        answers = [each for each in burst.answers() if each is not None]
        self.judge(answers, servers)
        # Those of the dead are removed as well.
        servers[0].wait_for(lambda: not store.locks())

    def test_a_server_that_waits_for_another_compiles_meanwhile(self):
        one, other = self.serve_many(2, self.start(Redis()).url, *PATIENT)
        body = json.dumps({"source": slow_kernel(10, 400), "name": "one.cu"}).encode()
        first = Many([(one.socket, body)])
        one.wait_for(lambda: one.stats()["workers"]["busy"] == 1)
        second = Many([(other.socket, body)])
        other.wait_for(lambda: self.store_of(other)["waiting"] == 1)
        self.check(other.compile(KERNEL % 1), "none")  # its only worker is idle
        self.assertEqual(self.store_of(other)["waiting"], 1)
        self.assertEqual([each[:2] for each in first.answers() + second.answers()], [(200, "none"), (200, "store")])

    def test_a_lease_is_extended_while_the_compile_runs(self):
        # The lease is much shorter than the compile: without extensions the other server would compile too.
        store = self.start(Redis())
        servers = self.serve_many(2, store.url, *PATIENT, "--store-lease", 0.5)
        answers = self.burst(servers, slow_kernel(6, 400)).answers()
        self.judge(answers, servers)
        self.assertGreater(json.loads(answers[0][2])["compile_ms"], 1000)

    def test_a_client_that_leaves_releases_the_lock(self):
        store = self.start(Redis())
        one, other = self.serve_many(2, store.url, *PATIENT, "--store-lease", 60)
        body = json.dumps({"source": slow_kernel(7, 200), "name": "one.cu"}).encode()
        first = Many([(one.socket, body)])
        one.wait_for(lambda: one.stats()["workers"]["busy"] == 1)
        second = Many([(other.socket, body)])
        other.wait_for(lambda: self.store_of(other)["waiting"] == 1)
        first.sockets[0].close()
        [(status, tier, _)] = second.answers()
        self.assertEqual((status, tier), (200, "none"))
        self.assertEqual(other.stats()["nvrtc_runs"], 1)

    def test_a_client_that_leaves_while_its_server_waits_is_forgotten(self):
        store = self.start(Redis())
        one, other = self.serve_many(2, store.url, *PATIENT)
        body = json.dumps({"source": slow_kernel(8, 200), "name": "one.cu"}).encode()
        first = Many([(one.socket, body)])
        one.wait_for(lambda: one.stats()["workers"]["busy"] == 1)
        second = Many([(other.socket, body)])
        other.wait_for(lambda: self.store_of(other)["waiting"] == 1)
        second.sockets[0].close()
        other.wait_for(lambda: self.store_of(other)["waiting"] == 0)
        self.assertEqual(first.answers()[0][0], 200)
        self.assertEqual(self.runs([one, other]), [1, 0])

    def test_a_lock_that_nobody_releases_delays_a_compile_by_no_more_than_its_limit(self):
        store = self.start(Redis())
        server = self.serve(store.url, *PATIENT, "--compile-timeout", 1.5).ready()
        self.wait_up(server)
        warm = server.compile(KERNEL % 1).json["key"]
        server.wait_for(lambda: not store.locks())
        # Everybody with access to the store knows the key of a request.
        store.ask("DEL", "quern:value:" + warm)
        store.ask("SET", "quern:lock:" + warm, "somebody")
        fresh = self.serve(store.url, *PATIENT, "--compile-timeout", 1.5).ready()
        self.wait_up(fresh)
        begin = time.monotonic()
        self.check(fresh.compile(KERNEL % 1), "none")
        self.assertGreater(time.monotonic() - begin, 1.4)
        self.assertLess(time.monotonic() - begin, 10)


class Failures(StoreCase):
    def test_a_stopped_store_costs_its_time_once_and_is_found_again(self):
        store = self.start(Redis())
        # Fifty times the default: a busy machine takes longer than 20 ms for the answer of a store that is well.
        server, other = self.serve_many(2, store.url, "--store-timeout", 1)
        for number, kind in ((100, "pause"), (200, "stop")):
            before = self.seconds(server)
            getattr(store, kind)()
            for i in range(10):
                self.check(server.compile(KERNEL % (number + i)), "none")
            # Ten requests that waited 1 s each would have made 10 s.
            self.assertLess(self.seconds(server) - before, 5)
            self.assertFalse(self.store_of(server)["up"])
            self.assertGreaterEqual(self.store_of(server)["gets"]["unavailable"], 9)
            store.resume() if kind == "pause" else store.start()
            self.wait_up(server)
            self.wait_up(other)
            source, _ = self.stored(server, (KERNEL % (number + 50 + i) for i in range(5)))
            server.wait_for(lambda: self.store_of(other)["up"])
            self.check(other.compile(source), "store")
        self.assertEqual(len(server.events("store-up")), 3)
        self.assertGreaterEqual(len(server.events("store-down")), 2)

    def test_a_store_that_is_not_there_at_the_start_is_used_when_it_comes(self):
        store = Redis()
        self.addCleanup(store.close)
        server = self.serve(store.url, *PATIENT).ready()
        self.check(server.compile(KERNEL % 1), "none")
        self.assertEqual(len(server.events("store-down")), 1)
        store.start()
        self.wait_up(server)
        self.check(server.compile(KERNEL % 2), "none")
        self.wait_put(server, 1)

    def test_a_slow_store_is_left_alone(self):
        store = self.start(Redis())
        proxy = SlowProxy(store.socket)
        self.addCleanup(proxy.close)
        server = self.serve(proxy.url).ready()
        self.wait_up(server)
        proxy.delay = 0.1
        before = self.seconds(server)
        for i in range(10):
            self.check(server.compile(KERNEL % i), "none")
        self.assertLess(self.seconds(server) - before, 0.15)
        self.assertIn("in time", server.events("store-down")[0]["reason"])
        proxy.delay = 0
        self.wait_up(server)

    def test_a_store_that_dies_while_a_server_waits_lets_it_compile(self):
        store = self.start(Redis())
        one, other = self.serve_many(2, store.url, *PATIENT, "--store-lease", 60)
        body = json.dumps({"source": slow_kernel(21, 200), "name": "one.cu"}).encode()
        first = Many([(one.socket, body)])
        one.wait_for(lambda: one.stats()["workers"]["busy"] == 1)
        second = Many([(other.socket, body)])
        other.wait_for(lambda: self.store_of(other)["waiting"] == 1)
        store.stop()
        self.assertEqual([each[:2] for each in first.answers() + second.answers()], [(200, "none")] * 2)

    def test_a_full_store_is_no_dead_store(self):
        store = self.start(Redis("--maxmemory", 1, "--maxmemory-policy", "noeviction"))
        server = self.serve(store.url, *PATIENT).ready()
        self.wait_up(server)
        for i in range(3):
            self.check(server.compile(KERNEL % i), "none")
        server.wait_for(lambda: self.store_of(server)["puts"]["failed"] == 3)
        self.assertTrue(self.store_of(server)["up"])
        self.assertIn("OOM", server.events("store-failed")[0]["reason"])

    def test_large_values_pass_with_the_short_time_out(self):
        # A value that compresses badly is sent uncompressed.
        sources = [stores.incompressible_kernel(200000) + KERNEL % i for i in range(5)]
        for store in (self.start(Redis()), self.start(Nginx()), self.start(HttpCache())):
            one, other = self.serve_many(2, store.url, "--store-timeout", 0.2)
            source, made = self.stored(one, sources)
            self.assertGreater(len(made.body), 2_000_000)
            got = other.compile(source)
            self.check(got, "store")
            self.assertEqual(got.body, made.body)


class Attacks(StoreCase):
    def setUp(self):
        super().setUp()
        self.store = self.start(Redis())
        self.one, self.other = self.serve_many(2, self.store.url, *PATIENT)

    def value_of(self, number):
        key = b"quern:value:" + self.one.compile(KERNEL % number).json["key"].encode()
        self.one.wait_for(lambda: self.store.ask("GET", key) is not None)
        return key, self.store.ask("GET", key)

    def refused(self, number, reason):
        before = self.store_of(self.other)["refused"][reason]
        answer = self.other.compile(KERNEL % number)
        self.check(answer, "none")
        self.assertIn(str(number), answer.json["ptx"])
        self.assertGreater(self.store_of(self.other)["refused"][reason], before)
        self.assertIn(reason, {each["reason"] for each in self.other.events("store-refused")})
        metrics = self.other.ask("GET", "/metrics").body.decode()
        self.assertRegex(metrics, rf'(?m)^quern_store_refused_total{{reason="{reason}"}} [1-9]')

    def test_what_is_replayed_under_another_key_is_refused_and_replaced(self):
        first, _ = self.value_of(311)
        _, second = self.value_of(312)
        self.store.ask("SET", first, second)
        self.refused(311, "other-key")
        # The other server has stored its own result in its place.
        self.wait_put(self.other, 1)
        self.assertNotEqual(self.store.ask("GET", first), second)
        third = self.serve(self.store.url, *PATIENT).ready()
        self.wait_up(third)
        self.check(third.compile(KERNEL % 311), "store")

    def test_what_is_changed_is_refused(self):
        changes = {"damaged": lambda value: value[:-1] + bytes([value[-1] ^ 1]), "wrong-seal": lambda value: value[:60] + bytes([value[60] ^ 1]) + value[61:],
                   "unsealed": lambda value: value[:97] + bytes(40) + value[137:], "unknown-key": lambda value: value[:97] + bytes([value[97] ^ 1]) + value[98:],
                   "format": lambda value: value[:8] + b"\x09" + value[9:]}
        for number, (reason, change) in enumerate(changes.items(), 321):
            key, value = self.value_of(number)
            self.store.ask("SET", key, change(value))
            self.refused(number, reason)

    def test_what_is_nonsense_is_refused(self):
        for number, value in enumerate((b"", b"nonsense", b"quernval", os.urandom(1 << 20)), 331):
            key, _ = self.value_of(number)
            self.store.ask("SET", key, value)
            self.refused(number, "damaged")

    def test_a_value_of_another_type_is_no_value(self):
        key, _ = self.value_of(341)
        self.store.ask("DEL", key)
        self.store.ask("LPUSH", key, "x")
        self.check(self.other.compile(KERNEL % 341), "none")
        self.assertIn("WRONGTYPE", self.other.events("store-failed")[0]["reason"])

    def test_keys_rotate_without_a_refusal(self):
        first = pathlib.Path(self.key).read_text().strip()
        second = "5a" * 32
        keys = [stores.new_key(self.folder, f"key-{i}") for i in range(2)]
        for path in keys:
            write_secret(path, first)
        servers = [self.serve(self.store.url, *PATIENT, "--store-key", path, key=False).ready() for path in keys]
        number = 400
        for step in ([first, second], [second, first], [second]):
            for server, path in zip(servers, keys):
                write_secret(path, "\n".join(step))
                before = len(server.events("reloaded"))
                server.process.send_signal(signal.SIGHUP)
                server.wait_for(lambda server=server, before=before: len(server.events("reloaded")) > before)
                for writer, reader in (servers, servers[::-1]):
                    number += 1
                    puts = self.store_of(writer)["puts"]["ok"]
                    self.check(writer.compile(KERNEL % number), "none")
                    self.wait_put(writer, puts + 1)
                    self.check(reader.compile(KERNEL % number), "store")
        self.assertEqual([sum(self.store_of(each)["refused"].values()) for each in servers], [0, 0])


class Options(StoreCase):
    def fails(self, *options, status, says, never="\0"):
        done = subprocess.run([serving.PROGRAM, "--listen", "unix:" + os.path.join(self.folder, "s"), *options], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(says, done.stderr)
        self.assertNotIn(never, done.stderr)

    def test_wrong_options(self):
        self.fails("--store", "redis://127.0.0.1:1", status=1, says="--store-key")
        self.fails("--store", "http://127.0.0.1:1", status=1, says="--store-trusted")
        self.fails("--store", "memcached://:hush@h", status=1, says="redis://HOST:PORT", never="hush")
        self.fails("--store", "redis://:hush@h/x", status=1, says="number of a database", never="hush")
        self.fails("--store-key", self.key, status=2, says="--store")
        open_key = os.path.join(self.folder, "open")
        pathlib.Path(open_key).write_text("ab" * 32 + "\n")
        os.chmod(open_key, 0o644)
        self.fails("--store", "redis://127.0.0.1:1", "--store-key", open_key, status=1, says="others can read")
        self.fails("--store", "redis://127.0.0.1:1", "--store-key", self.key, "--store-password-file", open_key, status=1, says="others than its owner")
        self.fails("--store", "redis://:hush@127.0.0.1:1", "--store-key", self.key, "--store-password-file", self.key, status=1, says="one in a file", never="hush")

    def test_a_trusted_store_needs_no_key(self):
        port = stores.free_port()
        self.start(Redis("--port", port))
        one, other = (self.serve(f"redis://127.0.0.1:{port}", "--store-trusted", *PATIENT, key=False).ready() for _ in range(2))
        self.wait_up(one)
        self.wait_up(other)
        self.check(one.compile(KERNEL % 1), "none")
        self.wait_put(one, 1)
        self.check(other.compile(KERNEL % 1), "store")

    def test_a_reload_with_a_bad_key_file_keeps_the_keys(self):
        store = self.start(Redis())
        one, other = self.serve_many(2, store.url, *PATIENT)
        self.check(one.compile(KERNEL % 1), "none")
        self.wait_put(one, 1)
        write_secret(self.key, "nonsense")
        other.process.send_signal(signal.SIGHUP)
        other.wait_for(lambda: other.events("reload-failed"))
        self.check(other.compile(KERNEL % 1), "store")

    def test_metrics_are_open_metrics(self):
        server = self.serve_many(1, self.start(Redis()).url)[0]
        text = server.ask("GET", "/metrics").body.decode()
        names = set(re.findall(r"(?m)^# TYPE (quern_store_\w+) ", text))
        self.assertEqual(names, {"quern_store_gets", "quern_store_puts", "quern_store_locks", "quern_store_refused", "quern_store_failures", "quern_store_up",
                                 "quern_store_waiting", "quern_store_seconds"})
        documented = (pathlib.Path(__file__).parent.parent.parent / "docs/protocol.md").read_text()
        for name in names:
            self.assertTrue(name in documented, name)
        for line in text.splitlines()[:-1]:
            self.assertRegex(line, r'^(# TYPE [a-z_]+ [a-z]+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+)$')
        self.assertTrue(text.endswith("# EOF\n"))


if __name__ == "__main__":
    if missing := stores.missing_programs():
        print("skipped: these programs are missing, which tools/setup --level test installs:", *missing)
        sys.exit(77)
    stores.allow_many_files()
    serving.PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=1)
