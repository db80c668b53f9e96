// The loop nest that walks several tensors of one shape: dimensions of size 1 are gone, and those
// that lie one behind the other in every tensor are one. Backends add how they walk it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/sdk.h>

namespace tenon::sdk {

// A loop nest over at most four tensors. Its last dimensions are rows and columns.
struct Nest {
  // The most tensors that a nest walks.
  static constexpr int kMaxOperands = 4;

  // The number of loops, of tensors, and of elements of each.
  int rank = 0;
  int operands = 0;
  int64_t numel = 1;
  // The sizes of the loops, the outermost first, and the steps of each tensor, in elements.
  int64_t shape[TN_MAX_RANK];
  int64_t strides[kMaxOperands][TN_MAX_RANK];

  // Makes a nest of no tensors.
  Nest() = default;
  // Make the nest of these tensors. The shape is that of the first, which must not be NULL. Any
  // other that is NULL is a single value: stride 0 everywhere. Throw TN_CODE_UNSUPPORTED for more
  // than kMaxOperands.
  explicit Nest(std::initializer_list<const tn_tensor_desc*> tensors)
      : Nest(std::span(tensors.begin(), tensors.size())) {}
  explicit Nest(std::span<const tn_tensor_desc* const> tensors)
      : operands(static_cast<int>(tensors.size())) {
    if (tensors.size() > kMaxOperands) unsupported("takes at most {} tensors", kMaxOperands);
    const tn_tensor_desc& first = *tensors[0];
    for (uint32_t d = 0; d < first.rank; ++d) {
      numel *= first.shape[d];
      if (first.shape[d] == 1) continue;
      shape[rank] = first.shape[d];
      int k = 0;
      for (auto* t : tensors) strides[k++][rank] = t ? t->strides[d] : 0;
      ++rank;
    }
    merge();
  }

  // Makes one loop of those that lie one behind the other in every tensor.
  void merge() {
    if (rank == 0) return;
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      bool behind = true;
      for (int k = 0; k < operands; ++k)
        behind = behind && strides[k][last] == strides[k][d] * shape[d];
      if (!behind) ++last;
      shape[last] = behind ? shape[last] * shape[d] : shape[d];
      for (int k = 0; k < operands; ++k) strides[k][last] = strides[k][d];
    }
    rank = last + 1;
  }

  // Reorders the loops by falling stride of operand 0 (any order visits the same elements), then
  // merges.
  void sort() {
    for (int i = 1; i < rank; ++i)
      for (int j = i; j > 0 && strides[0][j - 1] < strides[0][j]; --j) swap_dimensions(j - 1, j);
    merge();
  }

  // Exchanges two loops.
  void swap_dimensions(int a, int b) {
    std::swap(shape[a], shape[b]);
    for (int k = 0; k < operands; ++k) std::swap(strides[k][a], strides[k][b]);
  }

  // Returns the size of the last loop but one; 1 if there is none.
  int64_t rows() const { return rank > 1 ? shape[rank - 2] : 1; }
  // Returns the size of the last loop; 1 if there is none.
  int64_t cols() const { return rank > 0 ? shape[rank - 1] : 1; }
  // Returns the step of a tensor along the last loop but one; 0 if there is none.
  int64_t row_stride(int operand) const { return rank > 1 ? strides[operand][rank - 2] : 0; }
  // Returns the step of a tensor along the last loop; 0 if there is none.
  int64_t col_stride(int operand) const { return rank > 0 ? strides[operand][rank - 1] : 0; }
};

}  // namespace tenon::sdk
