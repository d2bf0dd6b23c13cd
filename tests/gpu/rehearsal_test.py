#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/gpu-check on a machine without a GPU: it reports "absent". With the CPU device in place of the driver, it runs its
sections without writing into docs/ or tests/golden. Where the tests are whole (no QUERN_TEST_FRACTION) the samples run from a
bundle, too.

  rehearsal_test.py BUILD LIBCUDA
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ["compare", "facts", "launches"]


def gpu_check(libcuda, *arguments, program=ROOT / "tools/gpu-check"):
    environment = {**os.environ, "QUERN_LIBCUDA": libcuda, "QUERN_CPU_MEMORY": "512M"}
    return subprocess.run([sys.executable, str(program), *arguments], env=environment, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def expect(good, what, done):
    if not good:
        sys.exit(f"{what}; status {done.returncode}:\n{done.stdout}")


def rehearse_bundle(build, libcuda, folder):
    bundle = folder / "bundle"
    done = gpu_check(libcuda, "--build", build, "--bundle", str(bundle))
    expect(done.returncode == 0, "there is no bundle", done)
    done = gpu_check(libcuda, "--results", str(folder / "bundled.md"), "--golden", str(folder / "bundled"), "--only", "samples",
                     program=bundle / "gpu-check")
    expect(done.returncode == 0 and " 0 failed" in done.stdout.splitlines()[-1], "samples fail in the bundle", done)


def main():
    build, libcuda = sys.argv[1:]
    done = gpu_check("libthere-is-no-such-driver.so")
    expect(done.returncode == 0 and done.stdout.startswith("absent"), "without a driver it is absent", done)
    done = gpu_check(libcuda, "--results", str(ROOT / "docs/gpu-results.md"))
    expect(done.returncode != 0 and "do not belong" in done.stdout, "a rehearsal must not pose as a GPU's results", done)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        only = [word for section in SECTIONS for word in ("--only", section)]
        done = gpu_check(libcuda, "--build", build, "--results", str(folder / "results.md"), "--golden", str(folder / "golden"), *only)
        expect(done.returncode == 0 and " 0 failed" in done.stdout.splitlines()[-1], "the rehearsal fails", done)
        text = (folder / "results.md").read_text()
        expect("this is no GPU" in text and "every bit" in text and "cuLaunchKernel" in text, "the page lacks sections", done)
        expect(any((folder / "golden").rglob("compare.json")), "no digests were written", done)
        if "QUERN_TEST_FRACTION" not in os.environ:
            rehearse_bundle(build, libcuda, folder)
    print("absent, refused, rehearsed")


if __name__ == "__main__":
    main()
