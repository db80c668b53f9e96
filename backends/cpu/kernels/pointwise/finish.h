// What a product or convolution does at last to rows of its result, while they are in the cache:
// its activation, by the very rows of the operator of that name, so that the bits are the same.
#pragma once

#include <cstdint>
#include <string_view>

#include <tenon/plugins/sdk/requests/activation.h>

namespace tenon::cpu {

struct Row;
using RowKernel = void (*)(const Row&);

struct Finish {
  // Calls the kernel for n elements at y, with the numbers of a run.
  using Rows = void (*)(RowKernel kernel, void* y, int64_t n, const tn_scalar* numbers);

  Rows rows = nullptr;  // null where nothing is left to do
  RowKernel kernel = nullptr;
  double ns = 0;  // the time of an element on one core

  explicit operator bool() const { return rows != nullptr; }
  // Changes n elements at y, of the dtype that was asked for.
  void operator()(void* y, int64_t n, const tn_scalar* numbers) const {
    if (rows) rows(kernel, y, n, numbers);
  }
};

// The activation that a request asks for, of f32 or f64.
Finish finish_of(const sdk::Request& request);

// That of each file of operators, or none for the name of another file's.
Finish finish_by_activation(std::string_view op, tn_dtype dtype);
Finish finish_by_smooth(std::string_view op, tn_dtype dtype);
Finish finish_by_clamp(std::string_view op, tn_dtype dtype);

}  // namespace tenon::cpu
