# SPDX-License-Identifier: Apache-2.0
"""Checks that helpers that access kernel memory call nothing: a fault outside their section would not count as the kernel's."""
import re
import shutil
import subprocess
import sys

objdump = shutil.which("objdump") or shutil.which("llvm-objdump-19")
if objdump is None:
    print("skipped: no objdump")
    sys.exit(77)
text = subprocess.run([objdump, "-d", "--section=quern_helper_text", sys.argv[1]], check=True, capture_output=True, text=True).stdout
functions = re.findall(r"^[0-9a-f]+ <(\S+)>:$", text, re.MULTILINE)
# A sanitizer's report of a bug in the helper itself is not an access by the kernel.
calls = [line for line in text.splitlines() if re.search(r"\tcall", line) and not re.search(r"<__(ubsan|asan|tsan)", line)]
if not functions or calls:
    print(f"{len(functions)} functions, which call:", *calls, sep="\n")
    sys.exit(1)
