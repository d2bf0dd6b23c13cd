#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs std_mdspan.cpp with the first compiler here whose standard library has <mdspan>.

  std_mdspan_test.py --include DIRECTORY SOURCE
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
# Debian's gcc 12 has none; libc++ has one from 18 on, libstdc++ from 15 on.
COMPILERS = [os.environ.get("CXX", "c++").split(), ["g++-15"], ["clang++-19", "-stdlib=libc++"], ["clang++", "-stdlib=libc++"]]
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def run(command, **options):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    except FileNotFoundError:
        return None


def has_mdspan(compiler):
    probe = run([*compiler, "-std=c++23", "-fsyntax-only", "-x", "c++", "-"], input="#include <mdspan>\nstd::dextents<int, 2> e;\n")
    return probe is not None and probe.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--include", required=True)
    parser.add_argument("source")
    arguments = parser.parse_args()
    compiler = next((one for one in COMPILERS if has_mdspan(one)), None)
    if compiler is None:
        print("no compiler here has <mdspan>; libc++-19-dev for clang++-19 has it")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory) / "std_mdspan"
        built = run([*compiler, "-std=c++23", *WARNINGS, "-I", arguments.include, arguments.source, "-o", str(program)])
        if built.returncode != 0:
            sys.exit(f"{' '.join(compiler)} does not compile it:\n{built.stdout}")
        ran = run([str(program)])
        if ran.returncode != 0:
            sys.exit(ran.stdout)
    print(f"{' '.join(compiler)}: array views become std::mdspan")


main()
