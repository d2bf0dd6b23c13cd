#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes QUERN_EXPORT(index, symbol) for each cu* function that a library exports.

usage: exported_functions.py LIBRARY OUTPUT
"""
import re
import subprocess
import sys

library, output = sys.argv[1:]
symbols = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True, stdout=subprocess.PIPE).stdout
# An aliased symbol is listed once for each name; a version may follow the name.
functions = sorted({name for name in re.findall(r" T (cu[A-Z]\w*)(?:@.*)?$", symbols, re.M)})
if not functions:
    sys.exit(f"{library} exports no driver function")
with open(output, "w") as file:
    file.writelines(f"QUERN_EXPORT({index}, {name})\n" for index, name in enumerate(functions))
