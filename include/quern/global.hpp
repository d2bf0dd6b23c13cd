// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "quern/device_array.hpp"
#include "quern/export.hpp"
#include "quern/stream.hpp"

namespace quern {

/// A handle of a __device__, __constant__ or __managed__ variable of a loaded module: copies refer to the
/// same variable and keep the module loaded. Made by Module::global() and Kernel::global(). Thread-safe, as
/// streams are; the program orders host copies and kernels that use the variable, as for arrays: a copy
/// without a stream is done on return and is ordered with the default stream.
class QUERN_API GlobalVariable {
 public:
  GlobalVariable(std::string name, DeviceBuffer memory)
      : name_(std::move(name)), memory_(std::move(memory)) {}

  /// The author's name for it: "gain", "ns::table".
  const std::string& name() const noexcept { return name_; }
  /// The device address, which a program may pass to kernels as a pointer.
  void* data() const noexcept { return memory_.data(); }
  std::size_t size_bytes() const noexcept { return memory_.size_bytes(); }
  /// The variable's memory.
  const DeviceBuffer& buffer() const noexcept { return memory_; }
  /// The variable as a C-contiguous array. Throws Error(usage) unless it has exactly the variable's size. A
  /// running kernel may not see a value that is written to a __constant__ variable; later ones do.
  DeviceNDArray array(const ElementType& element, const Shape& shape) const;

 private:
  std::string name_;
  DeviceBuffer memory_;
};

namespace detail {
/// Throws Error(usage) unless the variable is `count` elements of that size (0: any number of them).
QUERN_API void require_global(const GlobalVariable& variable, std::size_t element_bytes, std::size_t count);
/// Throws Error(usage) unless a copy has as many elements as the variable.
QUERN_API void require_count(const GlobalVariable& variable, std::size_t count, std::size_t given);

template <class T>
inline constexpr std::size_t kElementCount = 1;
template <class T>
inline constexpr std::size_t kElementCount<T[]> = 0;
template <class T, std::size_t N>
inline constexpr std::size_t kElementCount<T[N]> = N * kElementCount<T>;
}  // namespace detail

/// A variable whose type the compiler knows: `Global<float>` is one value, `Global<Params>` one struct,
/// `Global<float[16]>` and `Global<float[4][4]>` arrays of that many elements, `Global<float[]>` an array of
/// as many as the variable has. The elements of a `Global<const float>` cannot be written through it. Only
/// the type's size is checked against the variable's: a module does not give its type.
template <class T>
class Global : public GlobalVariable {
 public:
  using element_type = std::remove_all_extents_t<T>;
  using value_type = std::remove_cv_t<element_type>;
  static_assert(std::is_trivially_copyable_v<value_type>, "bytes are copied");

  /// Throws Error(usage) if the size does not fit.
  explicit Global(GlobalVariable variable) : GlobalVariable(std::move(variable)) {
    detail::require_global(*this, sizeof(value_type), detail::kElementCount<T>);
  }

  element_type* data() const noexcept { return static_cast<element_type*>(GlobalVariable::data()); }
  /// In elements; 1 if the variable is not an array.
  std::size_t size() const noexcept { return size_bytes() / sizeof(value_type); }

  /// Waits for the copy.
  value_type get() const
    requires(!std::is_array_v<T>)
  {
    value_type value;
    buffer().copy_to_host(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  /// On a stream the value is staged before the call returns.
  void set(const value_type& value, std::optional<StreamView> stream = {}) const
    requires(!std::is_array_v<T> && !std::is_const_v<element_type>)
  {
    buffer().copy_from_host(std::as_bytes(std::span(&value, 1)), 0, stream);
  }

  /// Exactly size() elements, in C order. With a stream the copy is queued: a source is staged before the
  /// call returns, a target must outlive the stream's synchronisation.
  void copy_from_host(std::span<const value_type> source, std::optional<StreamView> stream = {}) const
    requires(!std::is_const_v<element_type>)
  {
    detail::require_count(*this, size(), source.size());
    buffer().copy_from_host(std::as_bytes(source), 0, stream);
  }
  void copy_to_host(std::span<value_type> target, std::optional<StreamView> stream = {}) const {
    detail::require_count(*this, size(), target.size());
    buffer().copy_to_host(std::as_writable_bytes(target), 0, stream);
  }
  std::vector<value_type> copy_to_host() const
    requires(!std::is_same_v<value_type, bool>)
  {
    std::vector<value_type> target(size());
    copy_to_host(std::span<value_type>(target));
    return target;
  }

  /// The variable as an array, with the extents of its type (`T[]`: one, size(); no array: none). See
  /// GlobalVariable::array().
  DeviceArray<element_type> array() const {
    return DeviceArray<element_type>(GlobalVariable::array(element_type_of<value_type>(), shape()));
  }

 private:
  Shape shape() const {
    if constexpr (std::is_unbounded_array_v<T>)
      return {static_cast<std::int64_t>(size())};
    else
      return extents(std::make_index_sequence<std::rank_v<T>>());
  }
  template <std::size_t... I>
  static Shape extents(std::index_sequence<I...>) {
    return {static_cast<std::int64_t>(std::extent_v<T, static_cast<unsigned>(I)>)...};
  }
};

}  // namespace quern
