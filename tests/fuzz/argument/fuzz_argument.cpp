// SPDX-License-Identifier: Apache-2.0
// Any text as an argument of the command line (numbers, array expressions, indexed files) and as grid and
// block: a value or an error, and every element of the value lies in its bytes.
#include <quern/error.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string_view>

#include "arrays/argument.hpp"
#include "arrays/npy.hpp"
#include "small_memory.hpp"

using namespace quern;

namespace {

// A folder with a.npy of shape (4, 6) and s.npy of shape (), for texts such as "a.npy[1:, ::2].T".
class Files {
 public:
  Files() {
    char name[] = "/tmp/fuzz-argument-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    folder_ = name;
    cli::write_npy(folder_ + "/a.npy", cli::make_array(cli::element_of(Dtype::int32), {4, 6}));
    cli::write_npy(folder_ + "/s.npy", cli::make_array(cli::element_of(Dtype::float64), {}));
  }
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

void read_argument(std::string_view text) {
  static const Files files;
  const cli::Argument argument = cli::parse_argument(text, files.folder());
  if (const auto* array = std::get_if<cli::Array>(&argument.value)) {
    for (std::int64_t i = 0; i < array->count(); ++i)
      (void)cli::format_element(array->element, cli::element_at(*array, i));
    (void)cli::contiguous(*array);
  } else if (const auto* scalar = std::get_if<cli::Scalar>(&argument.value)) {
    (void)cli::to_string(*scalar);
  }
}

template <class Read>
void expect_value_or_error(Read read) {
  memory_is_small = true;
  try {
    read();
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {  // the text of a large array is larger than the array
  }
  memory_is_small = false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 200) return -1;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_value_or_error([text] { read_argument(text); });
  expect_value_or_error([text] { (void)cli::parse_dimensions(text, "--grid"); });
  return 0;
}
