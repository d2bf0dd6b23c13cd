// SPDX-License-Identifier: Apache-2.0
// Array views and mdspans. The library here is a replacement for std::mdspan with the same names and rules,
// for compilers that do not have it. std_mdspan.cpp contains the same tests with the real one.
#include "quern/array_view.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace quern;

namespace library {

template <class I, std::size_t Rank, std::size_t Dynamic = Rank>
class Extents {
 public:
  using index_type = I;
  Extents() = default;
  constexpr explicit Extents(const std::array<I, Rank>& values) : values_(values) {}
  static constexpr std::size_t rank() { return Rank; }
  static constexpr std::size_t rank_dynamic() { return Dynamic; }
  constexpr I extent(std::size_t axis) const { return values_[axis]; }

 private:
  std::array<I, Rank> values_{};
};

/// A layout with explicit strides.
struct Strided {
  template <class E>
  struct mapping {
    E extents;
    std::array<typename E::index_type, E::rank()> strides;
    mapping(const E& all, const std::array<typename E::index_type, E::rank()>& each)
        : extents(all), strides(each) {}
    typename E::index_type stride(std::size_t axis) const { return strides[axis]; }
  };
};
/// C order: nothing to say but the extents.
struct Right {
  template <class E>
  struct mapping {
    E extents;
    explicit mapping(const E& all) : extents(all) {}
    typename E::index_type stride(std::size_t axis) const {
      typename E::index_type stride = 1;
      for (std::size_t inner = E::rank(); --inner > axis;) stride *= extents.extent(inner);
      return stride;
    }
  };
};

template <class T, class E, class Layout>
class Mdspan {
 public:
  using element_type = T;
  using index_type = typename E::index_type;
  using extents_type = E;
  using mapping_type = typename Layout::template mapping<E>;
  Mdspan(T* data, const mapping_type& mapping) : data_(data), mapping_(mapping) {}
  static constexpr std::size_t rank() { return E::rank(); }
  static constexpr std::size_t rank_dynamic() { return E::rank_dynamic(); }
  index_type extent(std::size_t axis) const { return mapping_.extents.extent(axis); }
  index_type stride(std::size_t axis) const { return mapping_.stride(axis); }
  T* const& data_handle() const { return data_; }  // a reference, as in std::mdspan
  T& operator()(index_type i, index_type j) const { return data_[i * stride(0) + j * stride(1)]; }

 private:
  T* data_;
  mapping_type mapping_;
};

template <class T, class I = std::int64_t, class Layout = Strided>
using Matrix = Mdspan<T, Extents<I, 2>, Layout>;

}  // namespace library

using library::Matrix;

static_assert(std::convertible_to<ArrayView<float, 2>, Matrix<float>>);
static_assert(std::convertible_to<ArrayView<float, 2>, Matrix<const float, int>>);
static_assert(std::convertible_to<ArrayView<const float, 2>, Matrix<const float, unsigned>>);
static_assert(!std::convertible_to<ArrayView<const float, 2>, Matrix<float>>, "const stays const");
static_assert(!std::convertible_to<ArrayView<float, 2>, Matrix<double>>, "another element type");
static_assert(!std::convertible_to<ArrayView<float, 3>, Matrix<float>>, "another number of axes");
static_assert(!std::convertible_to<ArrayView<float, 2>, Matrix<float, int, library::Right>>,
              "a layout without strides");
static_assert(!std::convertible_to<ArrayView<float, 2>,
                                   library::Mdspan<float, library::Extents<int, 2, 1>, library::Strided>>,
              "an extent that the type fixes");
static_assert(MdspanLike<Matrix<float>> && MdspanLike<Matrix<const int, int, library::Right>>);
static_assert(!MdspanLike<std::vector<float>>);

TEST_CASE("an array view becomes an mdspan over the same elements, strides included") {
  std::vector<float> memory(24);
  std::iota(memory.begin(), memory.end(), 0.0f);
  // Every other column of the middle rows of a 4 x 6 matrix.
  const ArrayView<float, 2> view(memory.data() + 7, {2, 3}, {24, 8});
  const Matrix<float, int> span = view;
  CHECK(span.data_handle() == memory.data() + 7);
  CHECK(span.extent(0) == 2);
  CHECK(span.extent(1) == 3);
  CHECK(span.stride(0) == 6);
  CHECK(span.stride(1) == 2);
  CHECK(span(1, 2) == 17);
  span(0, 1) = -1;
  CHECK(memory[9] == -1);
  const Matrix<const float> constant = view;
  CHECK(constant(0, 1) == -1);
  // broadcast: an axis of extent 1 may have any stride
  const ArrayView<float, 2> one(memory.data(), {1, 3}, {0, 4});
  CHECK(static_cast<Matrix<float>>(one).stride(0) > 0);
}

TEST_CASE("an mdspan of any layout has the places that it says, as a layout") {
  std::vector<int> memory(6);
  using Right = Matrix<int, int, library::Right>;
  const Right right(memory.data(), Right::mapping_type(Right::extents_type({2, 3})));
  const Layout c = detail::layout_of(right);
  CHECK(c.is_c_contiguous());
  CHECK(c.strides_bytes()[0] == 12);
  const Matrix<int> left = ArrayView<int, 2>(memory.data(), {2, 3}, {4, 8});
  const Layout f = detail::layout_of(left);
  CHECK(f.is_f_contiguous());
  CHECK_FALSE(f.is_c_contiguous());
}
