// SPDX-License-Identifier: Apache-2.0
// The only source of a library that consists of a precompiled header.
