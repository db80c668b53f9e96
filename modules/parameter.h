// The two kinds of tensor that a module owns.
#pragma once

#include <utility>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon::nn {

namespace detail {

struct PlacedTensor {
  const void* place;
  Tensor tensor;
};

// A tensor whose place in memory is known, so that a module can tell whether its fields() names
// every parameter that lies in it.
class TENON_API Placed : public Tensor {
 public:
  Placed() noexcept { enlist(); }
  explicit Placed(Tensor tensor) noexcept : Tensor(std::move(tensor)) { enlist(); }
  Placed(const Placed& other) noexcept : Tensor(other) { enlist(); }
  Placed(Placed&& other) noexcept : Tensor(std::move(other)) { enlist(); }
  Placed& operator=(const Placed& other) noexcept {
    Tensor::operator=(other);
    return *this;
  }
  Placed& operator=(Placed&& other) noexcept {
    Tensor::operator=(static_cast<Tensor&&>(other));
    return *this;
  }
  ~Placed();

 private:
  void enlist() noexcept;
  friend std::vector<PlacedTensor> placed_within(const void*, size_t);
  Placed *before_ = nullptr, *after_ = nullptr;  // all that live, in a list
};
// Those that lie in these bytes. Takes time with the number of all that live.
std::vector<PlacedTensor> placed_within(const void* begin, size_t bytes);

}  // namespace detail

// A tensor that is learned. A field of this type is found by `parameters()` under its name. Made
// from a tensor, it shares the values, has no history and requires a gradient. Copies are the same
// parameter: `decoder.weight = encoder.weight` ties two layers.
class TENON_API Parameter : public detail::Placed {
 public:
  Parameter() = default;  // absent
  Parameter(const Tensor& values, bool requires_grad = true);
};

struct BufferOptions {
  bool persistent = true;  // kept in state_dict
};

// State that is not learned, such as running statistics: moves and is saved with the module.
class TENON_API Buffer : public detail::Placed {
 public:
  Buffer() = default;  // absent
  Buffer(const Tensor& values, BufferOptions options = {});
  Buffer& operator=(const Tensor& values);  // stays persistent or not, as it was
  bool persistent() const { return persistent_; }

 private:
  bool persistent_ = true;
};

}  // namespace tenon::nn
