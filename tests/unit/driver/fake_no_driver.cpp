// SPDX-License-Identifier: Apache-2.0
extern "C" int not_a_driver() { return 7; }
