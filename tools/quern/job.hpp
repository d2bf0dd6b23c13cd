// SPDX-License-Identifier: Apache-2.0
// A kernel with its arguments on a device: shared by `quern run` and the cases of `quern test`.
#pragma once

#include <quern/quern.hpp>

#include <optional>
#include <string>
#include <vector>

#include "arrays/argument.hpp"

namespace quern::cli {

/// A launch as the command line and case files describe it.
struct LaunchText {
  std::vector<std::string> args;  ///< the ARG language, in order or NAME=ARG
  std::string grid;               ///< empty: it covers the first array
  std::string block;              ///< empty: 256 threads, or as many as the kernel allows
  std::size_t shared_bytes = 0;
  bool cooperative = false;
  bool own_stream = false;
  std::vector<std::string> bind;  ///< constants of Kernel Python: NAME=ARG
  std::string signature;          ///< argument types of Kernel Python; empty: those of the arguments
  std::string folder;             ///< the base of relative files in `args`
};

/// An array argument: the array that the kernel gets, under its parameter's name ("#2" if it has none).
struct ArrayArgument {
  std::string name;
  std::size_t index = 0;
  Element element;
  DeviceNDArray device;
};

/// Arguments in device memory, ready to launch any number of times.
class Job {
 public:
  /// Throws Error(usage) for arguments that cannot be read or that do not fit.
  Job(const Session& session, Kernel kernel, const LaunchText& text);

  /// Launches once and waits. Returns the milliseconds of the kernel only.
  double launch();
  const std::vector<ArrayArgument>& arrays() const noexcept { return arrays_; }
  /// The array argument with the name `name` ("y" or "#2"). Throws Error(usage).
  const ArrayArgument& array(const std::string& name) const;
  /// The array's current contents, in C order.
  Array fetch(const ArrayArgument& argument) const;
  /// The same in Fortran order if the device's array is in that order.
  Array fetch_in_its_order(const ArrayArgument& argument) const;
  /// False if the grid has no blocks, which is valid.
  bool runs() const noexcept { return config_.grid.count() != 0; }
  const LaunchConfig& config() const noexcept { return config_; }
  const Kernel& kernel() const noexcept { return kernel_; }

 private:
  void place(const std::vector<cli::Argument>& given);
  void add(std::size_t index, const cli::Argument& given, const std::vector<const cli::Argument*>& all);
  void add_array(std::size_t index, const Array& array);
  DeviceNDArray send(const Array& array, bool with_strides) const;
  void configure(const LaunchText& text);

  Session session_;
  Kernel kernel_;
  std::optional<Stream> stream_;
  Event begin_;
  Event end_;
  LaunchConfig config_;
  std::vector<ArrayArgument> arrays_;
  std::vector<std::vector<std::byte>> values_;  // the bytes of structs passed by value
  std::vector<quern::Argument> arguments_;
};

/// The constants that `text.bind` gives. Throws Error(usage) for text that is not a number or array.
std::vector<Constant> parse_constants(const LaunchText& text);

/// The message for a launch whose grid is empty.
constexpr const char* kNothingRan = "nothing ran: the grid has no blocks";

/// The elements in C order, one after another, for any layout of the array.
Array in_c_order(const Array& array);

}  // namespace quern::cli
