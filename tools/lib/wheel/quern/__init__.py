# SPDX-License-Identifier: Apache-2.0
"""quern as a wheel: the command line `quern`, libquern with its headers, and the CPU device.

The installed files are in one folder, laid out as `meson install` does: a C++ program is built against it with
`PKG_CONFIG_PATH="$(python -m quern --pkg-config-path)" pkg-config --cflags --libs quern`.
"""
import pathlib

PREFIX = pathlib.Path(__file__).resolve().parent / "installed"


def program():
    """The path of the command line's program."""
    return PREFIX / "bin" / "quern"


def pkg_config_path():
    """The folder that holds quern.pc."""
    return next(PREFIX.glob("lib/**/quern.pc")).parent
