// SPDX-License-Identifier: Apache-2.0
// Generated code includes the header of every device function that it uses.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/cpp/cpp_text.hpp"

using namespace quern::frontend;

namespace {

struct Row {
  std::string_view path;
  std::string_view cuda;
};
constexpr Row kBuiltins[] = {
#define QUERN_BUILTIN(path, rule, cuda, least, most, doc) {path, cuda},
#define QUERN_TYPED(path, forms, doc) {path, forms},
#include "frontend/builtins/builtins.def"
};

struct Declared {
  std::string_view name;
  std::string_view file;
};
constexpr Declared kDeclared[] = {
#define QUERN_DEVICE_NAME(name, header) {name, #header},
#include "frontend/cpp/device_names.def"
};

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':'; }

/// The names of quern's device code in one column of builtins.def.
std::vector<std::string_view> device_names_in(std::string_view text) {
  std::vector<std::string_view> names;
  for (std::size_t at = text.find("quern::"); at != std::string_view::npos;
       at = text.find("quern::", at + 1)) {
    const auto* end = std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), in_name);
    names.push_back(text.substr(at, static_cast<std::size_t>(end - text.begin()) - at));
  }
  return names;
}

}  // namespace

TEST_CASE("the device functions of all built-ins have a header") {
  std::size_t found = 0;
  for (const Row& row : kBuiltins)
    for (const std::string_view name : device_names_in(row.cuda)) {
      INFO(row.path, ": ", name);
      CHECK_FALSE(device_name(name).headers().empty());
      ++found;
    }
  CHECK(found > 100);
}

TEST_CASE("each header of quern's contains the names that the table gives it") {
  std::size_t read = 0;
  for (const Declared& row : kDeclared) {
    const std::string_view file = device_name(row.name).headers().files().front();
    if (!file.starts_with("quern/")) continue;  // a header of CUDA
    std::ifstream stream(std::string(QUERN_TEST_INCLUDE) + "/" + std::string(file));
    std::stringstream text;
    text << stream.rdbuf();
    const std::string_view last = row.name.substr(row.name.rfind(':') + 1);
    INFO(row.name, " in ", file);
    CHECK(text.str().find(last) != std::string::npos);
    ++read;
  }
  CHECK(read > 60);
}

TEST_CASE("text keeps the headers of its parts") {
  const CppText type =
      cpp_text("{}<{}>", device_name("quern::tuple"), join({"int", device_name("__half")}, ", "));
  CHECK(type == "quern::tuple<int, __half>");
  CHECK(type.headers().files() == std::vector<std::string_view>{"cuda_fp16.h", "quern/cuda/tuple.cuh"});
  CHECK(device_name("quern::item<2>").headers().files() ==
        std::vector<std::string_view>{"quern/cuda/tuple.cuh"});
  CHECK(device_name("quern::lane_id()").headers().files() ==
        std::vector<std::string_view>{"quern/cuda/warp.cuh"});
  CHECK(device_name("sqrtf").headers().empty());
  CHECK(device_name("quern::itemised").headers().empty());
}
