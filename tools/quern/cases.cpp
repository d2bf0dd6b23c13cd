// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>

#include "arrays/figure.hpp"
#include "arrays/files.hpp"

namespace quern::cli {
namespace {

constexpr std::string_view kSuffix = ".case.toml";

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {}

  std::vector<Case> read(std::string_view text) {
    const toml::table root = parse(text);
    check_keys(root, {"kernel", "options", "defines", "include_dirs", "fastmath", "case"});
    Case common;
    common.file = file_;
    read_common(root, common);
    const toml::array* cases = root["case"].as_array();
    if (cases == nullptr || cases->empty()) fail(root.source(), "it holds no [[case]]");
    std::vector<Case> result;
    for (const toml::node& node : *cases) {
      if (!node.is_table()) fail(node.source(), "a case must be a table, written [[case]]");
      result.push_back(read_case(*node.as_table(), common));
    }
    return result;
  }

 private:
  toml::table parse(std::string_view text) const {
    try {
      return toml::parse(text, file_.string());
    } catch (const toml::parse_error& error) {
      fail(error.source(), std::string(error.description()));
    }
  }

  [[noreturn]] void fail(const toml::source_region& place, const std::string& what) const {
    throw Error(
        ErrorCode::usage,
        fmt::format("{}:{}:{}: {}\nhint: correct the case file there; kernels/basics/saxpy.case.toml is "
                    "one to look at",
                    file_.string(), place.begin.line, place.begin.column, what));
  }

  void check_keys(const toml::table& table, std::initializer_list<std::string_view> known) const {
    for (const auto& [key, node] : table)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        fail(key.source(), fmt::format("the key '{}' is not known here", key.str()));
  }

  std::string text(const toml::node& node, const char* what) const {
    if (const auto value = node.value_exact<std::string>()) return *value;
    fail(node.source(), fmt::format("{} must be a string", what));
  }

  /// "16x16", or a whole number.
  std::string dimensions(const toml::node& node, const char* what) const {
    if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
    return text(node, what);
  }

  std::vector<std::string> texts(const toml::node& node, const char* what) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) fail(node.source(), fmt::format("{} must be a list of strings", what));
    std::vector<std::string> result;
    for (const toml::node& item : *array) result.push_back(text(item, what));
    return result;
  }

  template <class T>
  T value(const toml::node& node, const char* what) const {
    if (const auto found = node.value<T>()) return *found;
    fail(node.source(), fmt::format("{} is of the wrong type", what));
  }

  std::string beside(const std::string& name) const {
    return std::filesystem::path(name).is_absolute() ? name : (file_.parent_path() / name).string();
  }

  void read_common(const toml::table& root, Case& common) const {
    if (const toml::node* node = root.get("kernel")) common.kernel = beside(text(*node, "kernel"));
    if (const toml::node* node = root.get("options")) common.load.options = texts(*node, "options");
    if (const toml::node* node = root.get("defines")) common.load.defines = texts(*node, "defines");
    if (const toml::node* node = root.get("include_dirs"))
      for (const std::string& folder : texts(*node, "include_dirs"))
        common.load.include_dirs.push_back(beside(folder));
    if (const toml::node* node = root.get("fastmath")) common.load.fastmath = value<bool>(*node, "fastmath");
    common.launch.folder = file_.parent_path().string();
  }

  Case read_case(const toml::table& table, const Case& common) const {
    check_keys(table, {"name", "kernel", "args", "grid", "block", "shared", "cooperative", "options",
                       "defines", "bind", "sig", "expect", "error", "bench"});
    Case result = common;
    if (const toml::node* node = table.get("name"))
      result.name = text(*node, "name");
    else
      fail(table.source(), "the case has no name");
    if (const toml::node* node = table.get("kernel")) result.kernel = beside(text(*node, "kernel"));
    if (result.kernel.empty()) fail(table.source(), "neither the file nor the case names a kernel");
    if (const toml::node* node = table.get("args")) result.launch.args = texts(*node, "args");
    if (const toml::node* node = table.get("grid")) result.launch.grid = dimensions(*node, "grid");
    if (const toml::node* node = table.get("block")) result.launch.block = dimensions(*node, "block");
    if (const toml::node* node = table.get("shared"))
      result.launch.shared_bytes =
          static_cast<std::size_t>(std::max<std::int64_t>(value<std::int64_t>(*node, "shared"), 0));
    if (const toml::node* node = table.get("cooperative"))
      result.launch.cooperative = value<bool>(*node, "cooperative");
    if (const toml::node* node = table.get("options")) result.load.options = texts(*node, "options");
    if (const toml::node* node = table.get("defines")) result.load.defines = texts(*node, "defines");
    if (const toml::node* node = table.get("error")) result.error = text(*node, "error");
    if (const toml::node* node = table.get("sig")) result.launch.signature = text(*node, "sig");
    if (const toml::node* node = table.get("bind")) result.launch.bind = read_bindings(*node);
    if (const toml::node* node = table.get("bench")) result.bench = read_figures(*node);
    if (const toml::node* node = table.get("expect")) read_expectations(*node, result);
    if (result.expectations.empty() && !result.error)
      fail(table.source(), "the case expects nothing: give it 'expect' or 'error'");
    return result;
  }

  /// bind = { N = "16", TABLE = "table.npy" }
  std::vector<std::string> read_bindings(const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(node.source(), "bind must be a table: { N = \"16\" }");
    std::vector<std::string> bindings;
    for (const auto& [key, item] : *table)
      bindings.push_back(fmt::format("{}={}", key.str(), text(item, "a bound constant")));
    return bindings;
  }

  /// bench = { bytes = "3 * 4 * 2**24", flops = "2 * 2**24" }
  BenchFigures read_figures(const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(node.source(), "bench must be a table: { flops = \"2 * 256**3\" }");
    check_keys(*table, {"bytes", "flops"});
    const auto figure = [&](const char* key) {
      const toml::node* item = table->get(key);
      if (item == nullptr) return 0.0;
      try {
        return evaluate_figure(text(*item, key));
      } catch (const Error& error) {
        fail(item->source(), error.what());
      }
    };
    return {figure("bytes"), figure("flops")};
  }

  void read_expectations(const toml::node& node, Case& result) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(node.source(), "expect must be a table: { \"y\" = { file = \"y.npy\" } }");
    for (const auto& [key, item] : *table) {
      if (!item.is_table()) fail(item.source(), "an expectation must be a table: { file = \"y.npy\" }");
      result.expectations.push_back(read_expectation(std::string(key.str()), *item.as_table()));
    }
  }

  Expectation read_expectation(std::string name, const toml::table& table) const {
    check_keys(table, {"file", "value", "sha256", "same_as", "rtol", "atol"});
    Expectation expectation;
    expectation.name = std::move(name);
    int kinds = 0;
    if (const toml::node* node = table.get("file"))
      ++kinds, expectation.expected = ExpectedFile{beside(text(*node, "file"))};
    if (const toml::node* node = table.get("value")) ++kinds, expectation.expected = read_values(*node);
    if (const toml::node* node = table.get("sha256"))
      ++kinds, expectation.expected = ExpectedDigest{text(*node, "sha256")};
    if (const toml::node* node = table.get("same_as"))
      ++kinds, expectation.expected = ExpectedSame{beside(text(*node, "same_as"))};
    if (kinds != 1) fail(table.source(), "an expectation has exactly one of file, value, sha256 and same_as");
    if (const toml::node* node = table.get("rtol")) expectation.rtol = value<double>(*node, "rtol");
    if (const toml::node* node = table.get("atol")) expectation.atol = value<double>(*node, "atol");
    return expectation;
  }

  ExpectedValues read_values(const toml::node& node) const {
    ExpectedValues values;
    values.single = !node.is_array();
    collect(node, values.numbers);
    return values;
  }

  void collect(const toml::node& node, std::vector<Scalar>& numbers) const {
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& item : *array) collect(item, numbers);
    } else if (const auto flag = node.value_exact<bool>()) {
      numbers.push_back({*flag, {}});
    } else if (const auto whole = node.value_exact<std::int64_t>()) {
      numbers.push_back({*whole, {}});
    } else if (const auto real = node.value_exact<double>()) {
      numbers.push_back({*real, {}});
    } else {
      fail(node.source(), "an expected value must be a number, a bool, or lists of such");
    }
  }

  const std::filesystem::path& file_;
};

}  // namespace

std::vector<Case> parse_cases(std::string_view text, const std::filesystem::path& file) {
  return Reader(file).read(text);
}

std::vector<Case> read_cases(const std::filesystem::path& file) {
  return parse_cases(read_whole_file(file.string()), file);
}

std::vector<std::filesystem::path> find_case_files(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return {path};
  if (!std::filesystem::is_directory(path, ignored))
    throw Error(
        ErrorCode::io,
        fmt::format(
            "cannot find cases in {}: there is no such file or folder\nhint: give a *.case.toml file or a "
            "folder that holds some",
            path.string()));
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(kSuffix))
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace quern::cli
