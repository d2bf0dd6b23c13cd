// SPDX-License-Identifier: Apache-2.0
// What ARG of `quern run` means: scalars, arrays from files and from makers, lengths of other arguments,
// structs by value.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <quern/dtype.hpp>

#include "tools/quern/host_array.hpp"

namespace tool {

struct ScalarValue {
  quern::Dtype dtype = quern::Dtype::int64;
  std::array<std::byte, 16> bytes{};
};

/// An element by value: value(x.npy).
struct StructValue {
  ElementKind element;
  std::vector<std::byte> bytes;
};

using ArgumentValue = std::variant<ScalarValue, HostArray, StructValue>;

/// Evaluates all arguments of a launch; one may refer to another's length in any order. Files are relative to
/// `folder`. Throws quern::Error(usage) for text that is not understood, Error(io) and Error(usage) for
/// files.
std::vector<ArgumentValue> evaluate_arguments(const std::vector<std::string>& texts,
                                              const std::filesystem::path& folder = {});

/// The help text's list of what an argument may be.
const char* argument_help() noexcept;

}  // namespace tool
