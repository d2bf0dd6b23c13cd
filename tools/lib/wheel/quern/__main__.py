# SPDX-License-Identifier: Apache-2.0
"""The console script `quern`: it becomes the program."""
import os
import sys

import quern


def main():
    if sys.argv[1:] == ["--pkg-config-path"]:
        print(quern.pkg_config_path())
        return
    os.execv(quern.program(), ["quern", *sys.argv[1:]])


if __name__ == "__main__":
    main()
