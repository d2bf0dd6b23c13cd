// SPDX-License-Identifier: Apache-2.0
#include "judge.hpp"

#include <fmt/format.h>

#include "arrays/npy.hpp"
#include "command.hpp"
#include "compare.hpp"
#include "values.hpp"

namespace quern::cli {
namespace {

std::optional<std::string> check(const Session& session, const Case& of, const Job& job,
                                 const Expectation& expectation) {
  const ArrayArgument& argument = job.array(expectation.name);
  const Array actual = job.fetch(argument);
  if (const auto* file = std::get_if<ExpectedFile>(&expectation.expected))
    return difference(actual, read_npy(file->path.string()), expectation.rtol, expectation.atol);
  if (const auto* values = std::get_if<ExpectedValues>(&expectation.expected))
    return difference(actual, *values, expectation.rtol, expectation.atol);
  if (const auto* digest = std::get_if<ExpectedDigest>(&expectation.expected)) {
    const std::string found = sha256_hex(*actual.bytes);
    if (found == digest->sha256) return std::nullopt;
    return fmt::format("its SHA-256 is {}, expected {}", found, digest->sha256);
  }
  const std::string& same = std::get<ExpectedSame>(expectation.expected).kernel;
  Job other(session, load_kernel(session, same, of.load, of.launch), of.launch);
  other.launch();
  for (const ArrayArgument& candidate : other.arrays())
    if (candidate.index == argument.index)
      return difference(actual, other.fetch(candidate), expectation.rtol, expectation.atol);
  return fmt::format("{} has no such argument", same);
}

}  // namespace

Kernel load_kernel(const Session& session, const std::string& text, LoadOptions load,
                   const LaunchText& launch) {
  const auto [file, name] = split_kernel(text);
  if (name.find('<') != std::string::npos) load.name_expressions.push_back(name);
  for (Constant& constant : parse_constants(launch)) load.constants.push_back(std::move(constant));
  const Module module = session.load_file(file, load);
  const Kernel kernel = name.empty() ? module.kernel() : module.kernel(name);
  return launch.signature.empty() ? kernel : kernel.specialise(launch.signature);
}

std::optional<std::string> wrong_result(const Session& session, const Case& of, const Job& job) {
  for (const Expectation& expectation : of.expectations)
    if (const std::optional<std::string> wrong = check(session, of, job, expectation))
      return fmt::format("{}: {}", expectation.name, *wrong);
  return std::nullopt;
}

}  // namespace quern::cli
