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

// A tensor whose address is known, so that a module can tell whether its fields() names every
// parameter that is part of the object.
class TENON_API Placed : public Tensor {
 public:
  Placed() noexcept { enlist(); }
  explicit Placed(Tensor tensor) noexcept : Tensor(std::move(tensor)) { enlist(); }
  Placed(const Placed& other) noexcept : Tensor(other) { enlist(); }
  Placed(Placed&& other) noexcept : Tensor(std::move(other)) { enlist(); }
  Placed& operator=(const Placed& other) noexcept {
    Tensor::operator=(other);
    replaced();
    return *this;
  }
  Placed& operator=(Placed&& other) noexcept {
    Tensor::operator=(static_cast<Tensor&&>(other));
    replaced();
    return *this;
  }
  ~Placed();

 protected:
  // A compiled function (core/graph/compile.h) has to look again at what it uses.
  static void replaced() noexcept;

 private:
  void enlist() noexcept;
  friend std::vector<PlacedTensor> placed_within(const void*, size_t);
  Placed *before_ = nullptr, *after_ = nullptr;  // neighbors in the list of all that exist
};
// Returns those that are in these bytes, in time proportional to the number of all that exist.
std::vector<PlacedTensor> placed_within(const void* begin, size_t bytes);

}  // namespace detail

// A tensor that is learned. `parameters()` finds a field of this type under its name. A parameter
// that is made from a tensor shares its values, has no history, and requires a gradient by default.
// Copies are the same parameter: `decoder.weight = encoder.weight` ties two layers.
class TENON_API Parameter : public detail::Placed {
 public:
  // Makes an absent parameter, an undefined tensor that modules do not list.
  Parameter() = default;
  // Makes a leaf that shares the values of a tensor. Throws a DTypeError if it is to require a
  // gradient and is not floating.
  Parameter(const Tensor& values, bool requires_grad = true);
};

// Options of what a layer with a weight learns, such as Linear and Conv2d.
struct WeightOptions {
  bool bias = true;           // whether it learns a bias
  TensorOptions tensor = {};  // dtype and device of weight and bias
};

struct BufferOptions {
  bool persistent = true;  // whether state_dict() and checkpoints contain it
};

// State that is not learned, such as running statistics. It is moved and saved with the module.
class TENON_API Buffer : public detail::Placed {
 public:
  // Makes an absent buffer, an undefined tensor that modules do not list.
  Buffer() = default;
  // Makes a buffer that shares the values of a tensor of any dtype, without its history.
  Buffer(const Tensor& values, BufferOptions options = {});
  // Shares the values of a tensor, without its history; whether the buffer is persistent does not
  // change.
  Buffer& operator=(const Tensor& values);
  // Returns whether state_dict() and checkpoints contain it.
  bool persistent() const { return persistent_; }

 private:
  bool persistent_ = true;
};

}  // namespace tenon::nn
