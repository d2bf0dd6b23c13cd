# SPDX-License-Identifier: Apache-2.0
"""Stores for tests and tools/fleet-demo: real servers in separate folders, on private sockets and ports."""
import contextlib
import hashlib
import http.server
import os
import pathlib
import resource
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time


REDIS = os.environ.get("QUERN_TEST_REDIS", "redis-server")  # a Valkey, for example


def missing_programs():
    return [name for name in (REDIS, "nginx", "openssl") if shutil.which(name) is None]


def free_port():
    with contextlib.closing(socket.socket()) as each:
        each.bind(("127.0.0.1", 0))
        return each.getsockname()[1]


def write_secret(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text + "\n")
    return path


class Process:
    """A store that is a program; stop() may be followed by start()."""

    words = []

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="quern-store-")
        self.process = None

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self):
        with open(self.path("output"), "ab") as output:
            self.process = subprocess.Popen(self.words, stdout=output, stderr=output, cwd=self.folder.name)
        end = time.monotonic() + 30
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError("the store does not start:\n" + pathlib.Path(self.path("output")).read_text())
            time.sleep(0.02)
        return self

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self, kind=signal.SIGKILL):
        self.process.send_signal(kind)
        self.process.wait(30)

    def close(self):
        if self.process and self.process.poll() is None:
            self.stop()
        self.folder.cleanup()


class Redis(Process):
    def __init__(self, *options):
        super().__init__()
        self.socket = self.path("redis.sock")
        self.url = "redis+unix:" + self.socket
        self.words = [REDIS, "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no", *map(str, options)]

    def answers(self):
        with contextlib.suppress(OSError):
            return self.ask("PING") is not None
        return False

    def ask(self, *words):
        """Sends one command. Returns text, a number, None, or an Exception for an error."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as each:
            each.settimeout(10)
            each.connect(self.socket)
            parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
            each.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            reader = each.makefile("rb")
            return self.reply(reader)

    def reply(self, reader):
        line = reader.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else reader.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply(reader) for _ in range(int(rest))]
        return Exception(rest.decode()) if kind == b"-" else int(rest) if kind == b":" else rest

    def values(self):
        return sorted(each.decode() for each in self.ask("KEYS", "quern:value:*"))

    def locks(self):
        return self.ask("KEYS", "quern:lock:*")


class Nginx(Process):
    """A flat WebDAV folder."""

    def __init__(self, *, methods="PUT DELETE MKCOL", password=None):
        super().__init__()
        port = free_port()
        self.url, self.port = f"dav://127.0.0.1:{port}/quern", port
        self.root = pathlib.Path(self.path("www/quern"))
        self.root.mkdir(parents=True)
        auth = ""
        if password:
            pathlib.Path(self.path("users")).write_text(f"quern:{{PLAIN}}{password}\n")
            auth = f'auth_basic store; auth_basic_user_file {self.path("users")};'
        temporary = " ".join(f"{kind}_temp_path {self.path('temp')};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        pathlib.Path(self.path("nginx.conf")).write_text(
            f"daemon off; master_process off; pid {self.path('pid')}; error_log {self.path('error')};\nevents {{}}\n"
            f"http {{ access_log off; {temporary} client_max_body_size 300m;\n"
            f"server {{ listen 127.0.0.1:{port}; root {self.path('www')}; location / {{ dav_methods {methods}; {auth} }} }} }}\n")
        self.words = ["nginx", "-e", self.path("error"), "-p", self.folder.name, "-c", self.path("nginx.conf")]

    def answers(self):
        with contextlib.suppress(OSError), contextlib.closing(socket.create_connection(("127.0.0.1", self.port), 5)):
            return True
        return False

    def values(self):
        return sorted(each.name for each in self.root.iterdir() if each.is_file())

    def locks(self):
        return [each.name for each in self.root.iterdir() if each.is_dir()]


def slow_kernel(number, functions=0):
    """A source that NVRTC needs a second for, and more with more functions: long enough for others to come meanwhile."""
    more = "".join(f"__global__ void f{i}(double* p) {{ *p = sin(*p) * {i}; }}\n" for i in range(functions))
    return f'#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nextern "C" __global__ void k(int* p) {{ *p = {number}; }}\n' + more


def incompressible_kernel(count):
    """A source whose PTX is some 20 bytes for each of `count` numbers, and hard to compress."""
    numbers = random.Random(count)
    return "__device__ unsigned a[] = {" + ",".join(str(numbers.getrandbits(32)) for _ in range(count)) + "};\n"


class HttpCache:
    """GET, PUT and HEAD under /ac and /cas; what is put under /cas must have that SHA-256."""

    def __init__(self):
        self.blobs = blobs = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def answer(self, status, body=b""):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def do_GET(self):
                body = blobs.get(self.path)
                self.answer(404) if body is None else self.answer(200, body)

            do_HEAD = do_GET

            def do_PUT(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                _, kind, name = self.path.split("/")
                good = kind == "ac" or (kind == "cas" and hashlib.sha256(body).hexdigest() == name)
                if good:
                    # bazel-remote adds a field of its own, the client's address: 9, execution_metadata.
                    blobs[self.path] = body + b"\x4a\x04\x0a\x02me" if kind == "ac" else body
                self.answer(200 if good else 400)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # servers that end close their connections
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def values(self):
        return sorted(name for name in self.blobs if name.startswith("/ac/"))

    def locks(self):
        return []


class SlowProxy:
    """Forwards bytes to a Unix socket, each block after `delay` seconds, which may change at any time."""

    def __init__(self, target):
        self.target, self.delay, self.open = target, 0.0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near = self.listener.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                self.open += [near, far]
                far.connect(self.target)
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    def copy(self, source, target):
        with contextlib.suppress(OSError):
            while block := source.recv(1 << 16):
                time.sleep(self.delay)
                target.sendall(block)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for each in self.open:
            each.close()


def make_certificates(folder):
    """An authority and a certificate for localhost: (authority, certificate, key)."""
    paths = [os.path.join(folder, name) for name in ("ca.pem", "server.pem", "server.key")]
    authority, certificate, key = paths
    authority_key = os.path.join(folder, "ca.key")

    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=quern test authority",
            "-keyout", authority_key, "-out", authority)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate + ".csr")
    extension = os.path.join(folder, "names")
    pathlib.Path(extension).write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-days", "2", "-in", certificate + ".csr", "-CA", authority, "-CAkey", authority_key, "-CAcreateserial", "-extfile", extension,
            "-out", certificate)
    return paths


def new_key(folder, name="store.key"):
    return write_secret(os.path.join(folder, name), secrets.token_hex(32))


def allow_many_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Many:
    """Requests on separate connections. All are sent before the first answer is read."""

    def __init__(self, requests):
        """requests: (path of a Unix socket, body)"""
        self.sockets = []
        for path, body in requests:
            each = socket.socket(socket.AF_UNIX)
            each.settimeout(120)
            each.connect(path)
            each.sendall(b"POST /v1/compile HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            self.sockets.append(each)

    def answers(self):
        """For each request (status, tier, body), or None where the server ended."""
        return [self.answer(each) for each in self.sockets]

    def answer(self, each):
        with contextlib.closing(each):
            data = b""
            try:
                while (end := data.find(b"\r\n\r\n")) < 0:
                    if not (block := each.recv(1 << 16)):
                        return None
                    data += block
                head = data[:end].decode().split("\r\n")
                fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:])}
                while len(data) < end + 4 + int(fields["content-length"]):
                    if not (block := each.recv(1 << 16)):
                        return None
                    data += block
            except ConnectionError:
                return None
            return int(head[0].split()[1]), fields.get("quern-cache"), data[end + 4:]
