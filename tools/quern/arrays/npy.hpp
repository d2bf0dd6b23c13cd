// SPDX-License-Identifier: Apache-2.0
// .npy files, as the library reads and writes them.
#pragma once

#include <string>

#include "arrays/array.hpp"

namespace quern::cli {

/// The array in a .npy file. Fortran order stays Fortran order (strides say so). Throws quern::Error (io)
/// naming the file for everything that is not a whole, valid one.
Array read_npy(const std::string& path);

/// Writes atomically: an existing file is replaced completely or not changed. Keeps Fortran order. Throws
/// quern::Error (io).
void write_npy(const std::string& path, const Array& array);

}  // namespace quern::cli
