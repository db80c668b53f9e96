// What a product, convolution or batch norm does at last to rows of its result, while they are in
// the cache: it adds its residual, and computes its activation by the same code as the operator of
// that name, so that the bits are the same.
#pragma once

#include <cstdint>
#include <string_view>

#include <tenon/plugins/sdk/requests/activation.h>
#include <tenon/plugins/sdk/requests/residual.h>

namespace tenon::cpu {

struct Row;
using RowKernel = void (*)(const Row&);

struct Finish {
  // Calls the kernel for n elements at y, with the numbers of a run.
  using Rows = void (*)(RowKernel kernel, void* y, int64_t n, const tn_scalar* numbers);

  using Add = void (*)(void* y, const void* residual, int64_t n);

  // The values of one run that a finish needs.
  struct Run {
    const tn_scalar* numbers = nullptr;
    const char *result = nullptr, *residual = nullptr;  // where the two tensors begin
  };

  Rows rows = nullptr;  // null without an activation
  RowKernel kernel = nullptr;
  double ns = 0;             // the time of an element on one core
  Add add = nullptr;         // null without a residual
  uint32_t residual = 0;     // its input
  uint32_t own_scalars = 0;  // that come before those of the activation
  uint32_t size = 0;         // of an element

  explicit operator bool() const { return rows || add; }
  Run of(const tn_run& run) const {
    if (!*this) return {};
    return {run.scalars + own_scalars, static_cast<const char*>(run.outputs[0]),
            add ? static_cast<const char*>(run.inputs[residual]) : nullptr};
  }
  // Changes n elements at y, of the dtype that was asked for.
  void operator()(void* y, int64_t n, const Run& with) const {
    if (*this) change(static_cast<char*>(y), n, with);
  }

 private:
  void change(char* y, int64_t n, const Run& with) const;
};

// Returns the finish that a request in f32 or f64 asks for. `inputs` and `own_scalars` say how many
// inputs and scalars the operator itself has.
Finish finish_of(const sdk::Request& request, uint32_t inputs, uint32_t own_scalars = 0);

// Each returns the finish for an activation that is defined in its file, or an empty one for any
// other name.
Finish finish_by_activation(std::string_view op, tn_dtype dtype);
Finish finish_by_smooth(std::string_view op, tn_dtype dtype);
Finish finish_by_clamp(std::string_view op, tn_dtype dtype);

}  // namespace tenon::cpu
