// SPDX-License-Identifier: Apache-2.0
// .npy files. Format: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays", versions 1.0 to 3.0.
#pragma once

#include <string>
#include <string_view>

#include "array.hpp"

namespace quern::cli {

/// The array in `bytes`, a whole .npy file. Fortran order stays Fortran order (strides say so); big-endian elements are
/// swapped. Throws quern::Error (io) naming `file` for everything that is not a whole, valid file.
Array parse_npy(std::string_view bytes, const std::string& file);
Array read_npy(const std::string& path);

/// The array as a file of format 1.0 (2.0 for a long header); Fortran order is kept where the array has it.
std::string format_npy(const Array& array);
/// Writes atomically: an existing file is replaced whole or left alone. Throws quern::Error (io).
void write_npy(const std::string& path, const Array& array);

}  // namespace quern::cli
