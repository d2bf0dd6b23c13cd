// SPDX-License-Identifier: Apache-2.0
#pragma GCC visibility push(default)
extern "C" int not_a_driver() { return 7; }
