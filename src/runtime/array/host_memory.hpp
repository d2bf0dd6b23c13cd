// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "quern/host_memory.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {

/// A range of the program's own memory that is page-locked as long as the object exists.
class Registration {
 public:
  Registration(std::shared_ptr<Context> context, const NDArray& array, unsigned flags);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  const std::shared_ptr<Context>& context() const noexcept { return context_; }
  const std::shared_ptr<Resource>& resource() const noexcept { return resource_; }
  std::byte* begin() const noexcept { return begin_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  std::shared_ptr<Context> context_;
  std::byte* begin_ = nullptr;
  std::size_t size_bytes_ = 0;
  std::shared_ptr<Resource> resource_;
};

DeviceNDArray make_device_array(const std::shared_ptr<Context>& context, Shape shape,
                                const ElementType& element, const ArrayOptions& options);
NDArray make_pinned_array(const std::shared_ptr<Context>& context, Shape shape, const ElementType& element,
                          const ArrayOptions& options);
MappedNDArray make_mapped_array(const std::shared_ptr<Context>& context, Shape shape,
                                const ElementType& element, const MappedOptions& options);
ManagedNDArray make_managed_array(const std::shared_ptr<Context>& context, Shape shape,
                                  const ElementType& element, const ArrayOptions& options,
                                  bool attach_global);

/// Pins all of the arrays, or none: arrays pinned before a failure are unpinned.
PinnedScope pin(const std::shared_ptr<Context>& context, std::span<const NDArray> arrays);
MappedScope map(const std::shared_ptr<Context>& context, std::span<const NDArray> arrays, StreamView stream);

}  // namespace quern::runtime
