// SPDX-License-Identifier: Apache-2.0
// component: compile
// Parts of arrays as Python's slices take them: a[1:n], a[::-2], a[i, :].
#pragma once

#include <quern/cuda/layout.cuh>

namespace quern {

/// The bound of a slice that was left out.
struct slice_open_t {};
constexpr slice_open_t slice_open{};
/// ':'
struct slice_all {};

/// start : stop : step, with Python's rules for negative and outlying bounds.
struct slice {
  long long start, stop, step;
  bool has_start, has_stop;

  template <class Start, class Stop, class Step>
  QUERN_HOST_DEVICE constexpr slice(Start first, Stop last, Step by)
      : start(bound(first)), stop(bound(last)), step(by), has_start(given(first)), has_stop(given(last)) {}

 private:
  static QUERN_HOST_DEVICE constexpr long long bound(long long value) { return value; }
  static QUERN_HOST_DEVICE constexpr long long bound(slice_open_t) { return 0; }
  static QUERN_HOST_DEVICE constexpr bool given(long long) { return true; }
  static QUERN_HOST_DEVICE constexpr bool given(slice_open_t) { return false; }
};

namespace detail {

QUERN_HOST_DEVICE constexpr long long clamp_bound(long long value, bool given, long long otherwise,
                                                  long long extent, long long low, long long high) {
  if (!given) return otherwise;
  if (value < 0) value += extent;
  return value < low ? low : value > high ? high : value;
}

// Takes one index of the source after the other; `from` counts its dimensions, `to` those that are kept.
template <int From, int To, class Out, class In>
QUERN_HOST_DEVICE void take(Out&, const In&, long long&) {}
template <int From, int To, class Out, class In, class... Rest>
QUERN_HOST_DEVICE void take(Out& out, const In& in, long long& offset, slice_all, Rest... rest);
template <int From, int To, class Out, class In, class... Rest>
QUERN_HOST_DEVICE void take(Out& out, const In& in, long long& offset, slice part, Rest... rest);

template <int From, int To, class Out, class In, class... Rest>
QUERN_HOST_DEVICE void take(Out& out, const In& in, long long& offset, long long index, Rest... rest) {
  offset += index * in.strides_bytes[From];
  take<From + 1, To>(out, in, offset, rest...);
}
template <int From, int To, class Out, class In, class... Rest>
QUERN_HOST_DEVICE void take(Out& out, const In& in, long long& offset, slice_all, Rest... rest) {
  out.extents[To] = in.extents[From];
  out.strides_bytes[To] = in.strides_bytes[From];
  take<From + 1, To + 1>(out, in, offset, rest...);
}
template <int From, int To, class Out, class In, class... Rest>
QUERN_HOST_DEVICE void take(Out& out, const In& in, long long& offset, slice part, Rest... rest) {
  const long long extent = in.extents[From], step = part.step;
  const bool up = step > 0;
  const long long low = up ? 0 : -1, high = up ? extent : extent - 1;
  const long long start = clamp_bound(part.start, part.has_start, up ? 0 : extent - 1, extent, low, high);
  const long long stop = clamp_bound(part.stop, part.has_stop, up ? extent : -1, extent, low, high);
  const long long span = up ? stop - start : start - stop, stride = up ? step : -step;
  out.extents[To] = span > 0 ? (span + stride - 1) / stride : 0;
  out.strides_bytes[To] = in.strides_bytes[From] * step;
  offset += start * in.strides_bytes[From];
  take<From + 1, To + 1>(out, in, offset, rest...);
}

template <class T>
QUERN_HOST_DEVICE T* advance(T* data, long long bytes) {
  using byte = unsigned char;
  return reinterpret_cast<T*>(
      reinterpret_cast<byte*>(const_cast<byte*>(reinterpret_cast<const byte*>(data))) + bytes);
}

}  // namespace detail

/// The part of `source` that an index for each dimension names: a number, slice_all or slice(start, stop,
/// step).
template <class Result, class Source, class... Index>
QUERN_HOST_DEVICE Result subview(const Source& source, Index... index) {
  Result result;
  long long offset = 0;
  detail::take<0, 0>(result, source, offset, index...);
  result.data = detail::advance(source.data, offset);
  return result;
}

/// A field of each record of an array, `offset` bytes from its begin.
template <class Result, class Source>
QUERN_HOST_DEVICE Result field(const Source& source, long long offset) {
  Result result;
  result.data = reinterpret_cast<decltype(result.data)>(detail::advance(source.data, offset));
  for (int dim = 0; dim < Source::rank; ++dim) {
    result.extents[dim] = source.extents[dim];
    result.strides_bytes[dim] = source.strides_bytes[dim];
  }
  return result;
}

/// The array with its dimensions in reverse order.
template <class Result, class Source>
QUERN_HOST_DEVICE Result transpose(const Source& source) {
  Result result;
  result.data = source.data;
  for (int dim = 0; dim < Source::rank; ++dim) {
    result.extents[dim] = source.extents[Source::rank - 1 - dim];
    result.strides_bytes[dim] = source.strides_bytes[Source::rank - 1 - dim];
  }
  return result;
}

namespace detail {

template <int Dim, class Target, class Visit, class... Index>
QUERN_HOST_DEVICE void for_each_index(const Target& target, Visit visit, Index... index) {
  if constexpr (Dim == Target::rank) {
    visit(index...);
  } else {
    for (long long i = 0; i < target.extents[Dim]; ++i) for_each_index<Dim + 1>(target, visit, index..., i);
  }
}

template <class Through, class To>
struct conversion {
  template <class From>
  static QUERN_HOST_DEVICE To of(const From& value) {
    return static_cast<To>(static_cast<Through>(value));
  }
};
template <class To>
struct conversion<void, To> {
  template <class From>
  static QUERN_HOST_DEVICE To of(const From& value) {
    return static_cast<To>(value);
  }
};
template <class Through, class To, class From>
QUERN_HOST_DEVICE void store(To& place, const From& value) {
  place = conversion<Through, To>::of(value);
}

}  // namespace detail

/// a[...] = value
template <class Target, class T>
QUERN_HOST_DEVICE void fill(const Target& target, const T& value) {
  detail::for_each_index<0>(target, [&](auto... index) { target(index...) = value; });
}

/// a[...] = b[...], of the same shape; a dimension of one element is repeated. CUDA's halves become each
/// other `Through` float.
template <class Through = void, class Target, class Source>
QUERN_HOST_DEVICE void copy(const Target& target, const Source& source) {
  detail::for_each_index<0>(target, [&](auto... index) {
    const long long all[] = {index...};
    long long offset = 0;
    for (int dim = 0; dim < Source::rank; ++dim) {
      const int outer = Target::rank - Source::rank + dim;
      offset += source.extents[dim] == 1 ? 0 : all[outer] * source.strides_bytes[dim];
    }
    detail::store<Through>(target(index...), *detail::advance(source.data, offset));
  });
}

}  // namespace quern
