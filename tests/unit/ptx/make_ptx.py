# SPDX-License-Identifier: Apache-2.0
"""Compiles data/*.cu with NVRTC to data/*.ptx. The PTX is checked in; run this by hand after changing a .cu.

usage: make_ptx.py [--nvrtc libnvrtc.so] [--include DIR]... [name...]
"""
import argparse
import collections
import ctypes
import pathlib
import re
import sys

DATA = pathlib.Path(__file__).parent / "data"
OPTIONS = {"lines": ["-lineinfo"], "symbols": ["--relocatable-device-code=true"], "integers": ["--device-int128"]}


def compile_ptx(nvrtc, source, name, options):
    def check(result):
        if result:
            raise SystemExit(f"NVRTC error {result} in {name}")

    program = ctypes.c_void_p()
    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None))
    encoded = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    result = nvrtc.nvrtcCompileProgram(program, len(options), encoded)
    size = ctypes.c_size_t()
    if result:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.value.decode())
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, text))
    return without_unused(text.value.decode())


def without_unused(text):
    """Drops the thousand constants of the library's headers that nothing uses."""
    words = collections.Counter(re.findall(r"[\w$]+", text))
    unused = re.compile(r"\.global [^;=]*?(\w+)(?: = \S+)?;$")
    lines = []
    for line in text.splitlines(keepends=True):
        found = unused.match(line.rstrip("\n"))
        if found is None or words[found[1]] > 1:
            lines.append(line)
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvrtc", default="libnvrtc.so")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--arch", default="compute_89")
    parser.add_argument("--out", default=str(DATA))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    nvrtc = ctypes.CDLL(arguments.nvrtc)
    for path in sorted(DATA.glob("*.cu")):
        if arguments.names and path.stem not in arguments.names:
            continue
        options = [f"--gpu-architecture={arguments.arch}", "--std=c++17"]
        options += [f"-I{directory}" for directory in arguments.include] + OPTIONS.get(path.stem, [])
        text = compile_ptx(nvrtc, path.read_text(), path.name, options)
        (pathlib.Path(arguments.out) / path.with_suffix(".ptx").name).write_text(text)
        print(path.stem, len(text), file=sys.stderr)


if __name__ == "__main__":
    main()
