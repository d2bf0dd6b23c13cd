// SPDX-License-Identifier: Apache-2.0
// What a library that is only a precompiled header consists of.
