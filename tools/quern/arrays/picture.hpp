// SPDX-License-Identifier: Apache-2.0
// A 2-D array as a PNG picture.
#pragma once

#include <string>

#include "arrays/array.hpp"

namespace quern::cli {

/// Writes `array` to `path`. An array (h, w) of any real dtype is drawn with a colour map from its smallest
/// to its largest finite value (NaN: black; with a logarithmic scale if more than half of the picture would
/// be dark). Arrays (h, w, 3) and (h, w, 4) of uint8 are RGB and RGBA. Throws quern::Error: usage if the
/// array is not a picture, io if the file cannot be written.
void write_picture(const std::string& path, const Array& array);

}  // namespace quern::cli
