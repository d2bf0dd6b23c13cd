// SPDX-License-Identifier: Apache-2.0
#pragma once

/// While true, operator new throws std::bad_alloc for more than a MiB. The fuzzer's own tables are larger.
extern bool memory_is_small;
