// Layers that only change the shape, or nothing.
#pragma once

#include <tenon/modules/module.h>

namespace tenon::nn {

// Joins the dimensions from `start_dim` to `end_dim`, both included, into one: by default (N, C, H,
// W) becomes (N, C*H*W). Negative numbers count from the end; a dimension that the input does not
// have is an IndexError.
struct TENON_API Flatten final : Module<Flatten> {
  Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim(start_dim), end_dim(end_dim) {}
  Tensor forward(const Tensor& x) const { return x.flatten(start_dim, end_dim); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const {
    return "start_dim=" + std::to_string(start_dim) + ", end_dim=" + std::to_string(end_dim);
  }

  int64_t start_dim, end_dim;
};

// Returns its input unchanged.
struct TENON_API Identity final : Module<Identity> {
  Tensor forward(const Tensor& x) const { return x; }
};

}  // namespace tenon::nn
