#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds NVRTC and the CUDA headers, or fetches them as wheels.

  toolkit.py find              prints "nvrtc FILE" and "headers DIRECTORY"; status 1 where either is missing
  toolkit.py fetch WHEEL...    pip downloads the wheels; their libraries and headers are unpacked into .quern/cuda

The places are those of src/compile/toolkit/search_locations.cpp, in its order.
"""
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FETCHED = ROOT / ".quern" / "cuda"
LIBRARY_DIRECTORIES = ("lib64", "lib", "targets/x86_64-linux/lib")
LIBRARY_NAMES = ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12")
INCLUDE_DIRECTORIES = ("include", "targets/x86_64-linux/include")
# Headers needed to build quern (cuda.h, nvrtc.h) and to compile kernels.
HEADERS = ("cuda.h", "nvrtc.h", "cuda_fp16.h", "cooperative_groups.h", "crt/host_defines.h")


def hidden():
    return os.environ.get("QUERN_HIDE_TOOLKIT") == "1"


def roots():
    if not hidden():
        for variable in ("CUDA_HOME", "CUDA_PATH"):
            if os.environ.get(variable):
                yield pathlib.Path(os.environ[variable])
        yield from (pathlib.Path(p) for p in ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-*"), reverse=True))
    yield FETCHED
    for prefix in python_prefixes():
        for site in ("lib/python3*/site-packages", "lib/python3*/dist-packages"):
            yield from (pathlib.Path(p) for p in sorted(glob.glob(f"{prefix}/{site}/nvidia/cu13")))


def python_prefixes():
    for variable, rest in (("VIRTUAL_ENV", ""), ("CONDA_PREFIX", ""), ("HOME", "/.local"), ("PYENV_ROOT", "/versions/*")):
        if os.environ.get(variable):
            yield os.environ[variable] + rest
    yield from ("/usr/local", "/usr")


def library(root):
    for directory in LIBRARY_DIRECTORIES:
        for name in LIBRARY_NAMES:
            if (root / directory / name).exists():
                return root / directory / name
    return None


def headers(root):
    for directory in INCLUDE_DIRECTORIES:
        if all((root / directory / name).exists() for name in HEADERS):
            return root / directory
    return None


def find():
    """NVRTC and headers of one root: they must go together, and building needs the headers."""
    for root in roots():
        if library(root) and headers(root):
            return library(root), headers(root)
    return None


def unpack(wheel, target):
    """`nvidia/cu13/lib/x` and `nvidia/cu13/include/x` -> `lib/x`, `include/x` below target."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            parts = pathlib.PurePosixPath(member.filename).parts
            kind = next((i for i, part in enumerate(parts) if part in ("lib", "include")), None)
            if member.is_dir() or parts[0] != "nvidia" or kind is None or ".." in parts:
                continue
            if parts[kind] == "lib" and (not parts[-1].startswith("libnvrtc") or ".alt." in parts[-1]):
                continue  # the CUDA runtime is not used
            path = target.joinpath(*parts[kind:])
            path.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(member) as source, open(path, "wb") as out:
                shutil.copyfileobj(source, out)


def fetch(wheels):
    FETCHED.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FETCHED.parent) as work:
        downloads, unpacked = pathlib.Path(work) / "wheels", pathlib.Path(work) / "cuda"
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--only-binary=:all:", "--dest", str(downloads)] + wheels, check=True)
        for wheel in sorted(downloads.glob("*.whl")):
            unpack(wheel, unpacked)
        if not (library(unpacked) and headers(unpacked)):
            sys.exit("toolkit.py: the wheels do not hold what quern needs")
        shutil.rmtree(FETCHED, ignore_errors=True)
        os.replace(unpacked, FETCHED)


def main(arguments):
    if arguments[:1] == ["find"]:
        found = find()
        if found is None:
            sys.exit(1)
        print(f"nvrtc {found[0]}\nheaders {found[1]}")
    elif arguments[:1] == ["fetch"] and len(arguments) > 1:
        fetch(arguments[1:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
