# SPDX-License-Identifier: Apache-2.0
"""One run of a client: its folders, its packages, and commands on the CPU device."""
import concurrent.futures
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time

import toolkit

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
CLIENTS = ROOT / ".quern" / "clients"
COMMAND_SECONDS = 3600


class Unavailable(Exception):
    """The client cannot be set up here."""


@dataclasses.dataclass
class Ended:
    status: object
    output: str
    seconds: float


@dataclasses.dataclass
class Job:
    name: str
    build: pathlib.Path
    source: pathlib.Path | None
    jobs: int
    only: list

    @property
    def folder(self):
        folder = CLIENTS / self.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def tests(self):
        return ROOT / "tests" / "clients" / self.name

    @property
    def libcuda(self):
        """The folder of libcuda.so.1."""
        return self.build / "src" / "cpu" / "device"

    def toolkit_include(self):
        """The folder of cuda.h and of the headers beside it."""
        found = toolkit.find()
        if not found:
            raise Unavailable("no cuda.h was found")
        return found[1]

    def work(self, name):
        """An empty folder."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def python(self, packages):
        """The interpreter of a virtual environment with these packages, made once."""
        folder = self.folder / "python"
        stamp = folder / "quern-packages"
        if not stamp.exists() or stamp.read_text() != " ".join(packages):
            print(f"installing {self.name} into {folder.relative_to(ROOT)}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run([str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages], check=True)
            stamp.write_text(" ".join(packages))
        return folder / "bin" / "python"

    def debian(self, *packages):
        """A folder with the files of Debian packages, unpacked and not installed."""
        folder = self.folder / "debian"
        stamp = folder / "quern-packages"
        if stamp.exists() and stamp.read_text() == " ".join(packages):
            return folder
        if not shutil.which("apt-get"):
            raise Unavailable("it comes from Debian's packages, and there is no apt-get")
        print(f"unpacking {self.name} into {folder.relative_to(ROOT)}", flush=True)
        folder = self.work("debian")
        subprocess.run(["apt-get", "download", "-qq", *packages], cwd=folder, check=True)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
        stamp.write_text(" ".join(packages))
        return folder

    def run(self, command, log, folder=None, variables=None, seconds=COMMAND_SECONDS, on_device=True):
        """Runs a command on the CPU device, without code that an earlier run has compiled."""
        if on_device:
            command = [self.build / "quern", "exec", "--", *command]
        environment = os.environ | {"QUERN_CACHE": "0"} | {name: str(value) for name, value in (variables or {}).items()}
        begin = time.monotonic()
        with open(log, "w", encoding="utf-8") as output:
            process = subprocess.Popen([str(word) for word in command], cwd=folder or self.folder, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=output, start_new_session=True)
            try:
                status = process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                status = f"a timeout of {seconds} s"
        return Ended(status, log.read_text(errors="replace"), time.monotonic() - begin)

    def selected(self, names):
        return [name for name in names if not self.only or any(part in name for part in self.only)]

    def side_by_side(self, function, items):
        """The results in order, of so many items at a time as --jobs says."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as lanes:
            yield from zip(items, lanes.map(function, items))
