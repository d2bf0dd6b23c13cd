# SPDX-License-Identifier: Apache-2.0
"""check_section.py PROGRAM SECTION PATTERN: checks that the functions in a section of code call nothing but functions whose names match.

`quern_helper_text` holds helpers that access kernel memory: a fault in what they called would not count as the kernel's. A sanitizer's report
of a bug in the helper itself is not an access by the kernel. `quern_signal_text` holds the signal handler, which may interrupt any code.
"""
import re
import shutil
import subprocess
import sys

objdump = shutil.which("objdump") or shutil.which("llvm-objdump-19")
if objdump is None:
    print("skipped: no objdump")
    sys.exit(77)
program, section, pattern = sys.argv[1:]
text = subprocess.run([objdump, "-d", "-C", f"--section={section}", program], check=True, capture_output=True, text=True).stdout
functions = re.findall(r"^[0-9a-f]+ <(.+)>:$", text, re.MULTILINE)
# A jump to the beginning of another function is a call at the end of one.
calls = [line for line in text.splitlines() if re.search(r"\tcall|\tjmp .*<[^+]*>$", line)]
wrong = [line for line in calls if not re.search(f"<(.*::)?({pattern})", line)]
if not functions or wrong:
    print(f"{len(functions)} functions in {section}, which call:", *wrong, sep="\n")
    sys.exit(1)
