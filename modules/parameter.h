// The two kinds of tensor that a module owns.
#pragma once

#include <tenon/core/tensor.h>

namespace tenon::nn {

// A tensor that is learned. A field of this type is found by `parameters()` under its name. Made from a tensor, it shares the
// values, has no history and requires a gradient. Copies are the same parameter: `decoder.weight = encoder.weight` ties two layers.
class TENON_API Parameter : public Tensor {
 public:
  Parameter() = default;  // absent
  Parameter(const Tensor& values, bool requires_grad = true);
};

struct BufferOptions {
  bool persistent = true;  // kept in state_dict
};

// State that is not learned, such as running statistics: moves and is saved with the module.
class TENON_API Buffer : public Tensor {
 public:
  Buffer() = default;  // absent
  Buffer(const Tensor& values, BufferOptions options = {});
  Buffer& operator=(const Tensor& values);  // stays persistent or not, as it was
  bool persistent() const { return persistent_; }

 private:
  bool persistent_ = true;
};

}  // namespace tenon::nn
