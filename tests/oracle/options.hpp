// SPDX-License-Identifier: Apache-2.0
// The options of programs that use the oracle. CLI11 takes seconds to compile in each file that includes it,
// so only one file does.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace quern::oracle {

class Options {
 public:
  explicit Options(const std::string& description);
  ~Options();

  /// Numbers keep their values if their option is not given.
  void add(const std::string& name, std::uint64_t& number, const std::string& help);
  void add(const std::string& name, unsigned& number, const std::string& help);
  void add(const std::string& name, std::optional<std::uint64_t>& number, const std::string& help);
  void add(const std::string& name, std::string& text, const std::string& help);
  void add(const std::string& name, bool& flag, const std::string& help);
  void add_choice(const std::string& name, std::string& word, const std::vector<std::string>& words);

  /// Returns an exit status if the program must end: after --help was printed, or unknown arguments were
  /// reported.
  std::optional<int> read(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

/// `count` divided by QUERN_TEST_FRACTION, if that is set, for short runs.
std::uint64_t part_of(std::uint64_t count);
/// True if the variable is set.
bool tries_a_part();

}  // namespace quern::oracle
