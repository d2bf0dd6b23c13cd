// SPDX-License-Identifier: Apache-2.0
// Elements as numbers: for JSON documents and for comparing.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <string>

#include "arrays/array.hpp"
#include "command.hpp"

namespace quern::cli {

/// A number; "nan", "inf", "-inf" as strings; complex as [re, im]; a record as its bytes in hexadecimal.
Json json_value(const Element& element, const std::byte* bytes);

/// An element of any dtype as a number; integers beyond 2^53 are rounded.
std::complex<double> number_at(Dtype dtype, const std::byte* bytes);

/// SHA-256, in lower-case hexadecimal.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace quern::cli
