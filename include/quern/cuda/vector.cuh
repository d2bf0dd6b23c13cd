// SPDX-License-Identifier: Apache-2.0
// component: compile
// Short vectors of numbers, as Kernel Python's float32x4: quern::vector<float, 4>{x, y, z, w}.
#pragma once

namespace quern {

template <class T, int N>
struct vector;
template <class T>
struct vector<T, 1> {
  T x;
};
template <class T>
struct vector<T, 2> {
  T x, y;
};
template <class T>
struct vector<T, 3> {
  T x, y, z;
};
template <class T>
struct vector<T, 4> {
  T x, y, z, w;
};

}  // namespace quern
