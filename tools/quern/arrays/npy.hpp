// SPDX-License-Identifier: Apache-2.0
// Reads and writes .npy files with the library.
#pragma once

#include <string>

#include "arrays/array.hpp"

namespace quern::cli {

/// Reads the array in a .npy file. Fortran order is preserved (strides express it). Throws quern::Error (io)
/// with the file's name if the file is not complete and valid.
Array read_npy(const std::string& path);

/// Writes atomically: an existing file is replaced completely or not changed. Preserves Fortran order. Throws
/// quern::Error (io).
void write_npy(const std::string& path, const Array& array);

}  // namespace quern::cli
