// SPDX-License-Identifier: Apache-2.0
// A 2-D array as a PNG picture.
#pragma once

#include <string>

#include "arrays/array.hpp"

namespace quern::cli {

/// Writes `array` to `path`: (h, w) of any real dtype through a colour map from its smallest to its largest
/// finite value (NaN: black; a picture of which more than half would be dark is drawn on a logarithmic
/// scale); (h, w, 3) and (h, w, 4) uint8 as RGB and RGBA. Throws quern::Error: usage if the array is not a
/// picture, io if the file cannot be written.
void write_picture(const std::string& path, const Array& array);

}  // namespace quern::cli
