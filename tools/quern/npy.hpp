// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, format versions 1 to 3 (numpy.lib.format, "Format Version 1.0" and after): a magic, a
// header length, a Python dict {'descr', 'fortran_order', 'shape'}, the elements.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <quern/expected.hpp>

#include "tools/quern/host_array.hpp"

namespace tool {

/// The array in a .npy file. All of quern's dtypes, in either byte order (bfloat16 is `V2`, as ml_dtypes
/// writes it); records with padding, nested records and subarrays, and byte strings, as records. Fortran
/// order comes as a view with its strides. The diagnostics name the file, what is wrong with it and what to
/// do.
quern::Expected<HostArray> read_npy(const std::filesystem::path& path);

/// The same of bytes in memory; `name` is for messages.
quern::Expected<HostArray> parse_npy(std::span<const std::byte> file, const std::string& name);

/// The file's bytes for `array`, in C order.
std::string npy_bytes(const HostArray& array);

}  // namespace tool
