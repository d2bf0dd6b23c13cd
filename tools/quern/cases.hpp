// SPDX-License-Identifier: Apache-2.0
// Case files: *.case.toml beside the kernels.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "job.hpp"

namespace quern::cli {

/// Numbers as a case contains them: one for all elements, or one for each (nested lists are in C order).
struct ExpectedValues {
  std::vector<Scalar> numbers;
  bool single = false;
};
struct ExpectedFile {
  std::filesystem::path path;
};
struct ExpectedDigest {
  std::string sha256;
};
/// The result must equal that of another kernel with the same arguments.
struct ExpectedSame {
  std::string kernel;
};

/// The expected contents of an array: |value - expected| <= atol + rtol * |expected|, and NaN where NaN is
/// expected.
struct Expectation {
  std::string name;  ///< of the array argument
  std::variant<ExpectedValues, ExpectedFile, ExpectedDigest, ExpectedSame> expected;
  double rtol = 0;
  double atol = 0;
};

/// The bytes that a benchmark moves and the operations that it performs in one launch; 0: not given.
struct BenchFigures {
  double bytes = 0;
  double flops = 0;
};

struct Case {
  std::filesystem::path file;
  std::string kernel;  ///< FILE::KERNEL, the file made relative to the case file's folder
  std::string name;
  LaunchText launch;
  LoadOptions load;
  std::vector<Expectation> expectations;
  std::optional<std::string>
      error;  ///< the case must fail with a message that holds this, as text or as a regular expression
  std::optional<BenchFigures> bench;  ///< `quern bench` times it
};

/// Parses every case in a file's text. Throws Error(usage) with the file and the line; an unknown key is an
/// error.
std::vector<Case> parse_cases(std::string_view text, const std::filesystem::path& file);
/// The same for a file. Throws Error(io) if it cannot be read.
std::vector<Case> read_cases(const std::filesystem::path& file);

/// The case files under `path` in alphabetical order, or `path` itself. Throws Error(io) if it does not
/// exist.
std::vector<std::filesystem::path> find_case_files(const std::filesystem::path& path);

}  // namespace quern::cli
