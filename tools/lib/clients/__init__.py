# SPDX-License-Identifier: Apache-2.0
"""Programs that use the CUDA Driver API and know nothing of quern, one a module.

A module has TITLE, with the version; LANDMARK, a file that tells a checkout of the client from others, or None if PyPI or Debian has the
client; and cases(job), which sets the client up, runs it by `quern exec` and yields a Case for each of its tests.
"""
