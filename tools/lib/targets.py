# SPDX-License-Identifier: Apache-2.0
"""Builds what a tool is about to run."""
import os
import pathlib
import subprocess
import sys

# As tools/lib/common.sh has them, so that one build is not another's miss.
CCACHE = {"CCACHE_DEPEND": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros,include_file_mtime,include_file_ctime"}


def make(who, build, targets):
    """Brings `targets` of the build folder up to date; those that this build does not have are passed over. Under `meson test`
    everything is built, and a second ninja must not run in the folder."""
    if "MESON_TEST_ITERATION" in os.environ:
        return
    rules = pathlib.Path(build) / "build.ninja"
    if not rules.exists():
        sys.exit(f"{who}: there is no build in {build}; run `tools/test unit`, which sets up what it needs and builds build/")
    known = rules.read_text()
    wanted = [target for target in targets if f"build {target}:" in known]
    if not wanted:
        sys.exit(f"{who}: the build in {build} has none of {', '.join(targets)}; configure it with -Dtests=true")
    done = subprocess.run(["ninja", "-C", str(build), *wanted], env={**CCACHE, **os.environ}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{who}: the build failed:\n{done.stdout[-4000:]}")
