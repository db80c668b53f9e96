// A matrix in memory, as the kernels of linear algebra take it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace tenon::cpu {

// Strides in elements.
template <class T>
struct MatrixView {
  T* data;
  int64_t row, col;

  T& operator()(int64_t i, int64_t j) const { return data[i * row + j * col]; }
  MatrixView at(int64_t i, int64_t j) const { return {data + i * row + j * col, row, col}; }
  MatrixView turned() const { return {data, col, row}; }
  operator MatrixView<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, row, col};
  }
};

}  // namespace tenon::cpu
