// Mixed precision: while a guard is alive, operators choose the dtype in which they compute. Each
// thread has its own guards.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <tenon/core/api.h>
#include <tenon/core/device.h>
#include <tenon/core/dtype.h>

namespace tenon {

// Says where and how a guard counts.
struct AutocastOptions {
  // False makes the operators inside compute in the dtypes of their inputs again.
  bool enabled = true;
  // Converts a parameter once as long as the outermost guard lives, and not at each use.
  bool cache_enabled = true;
  // Names the kind of devices that the guard is about, such as "cuda"; if it is empty, the guard is
  // about all of them. On others the guard outside of it counts.
  std::string device_type = {};
};

// Until the end of its scope, the operators of this thread compute in the dtypes that are good for
// them, as in torch.autocast: products of matrices, convolutions, attention and recurrent cells
// convert floating inputs to `dtype` (f16 or bf16; anything else is a DTypeError); sums, softmax,
// losses, norms, exponentials and logarithms convert half types to f32; and all others take what
// they get. docs/training.md has the lists. Inputs of f64 are never converted, and operators that
// change a tensor in place convert nothing.
//
//   {
//     Autocast guard(bf16);
//     loss = cross_entropy(net(x), y);
//   }
//   loss.backward();
//
// The conversions are recorded, so that the gradients of parameters have the parameters' dtype. The
// backward pass computes in the dtypes of the forward pass, with or without a guard around it.
// Guards may be nested; the innermost one counts. They end in the opposite order in which they
// began.
class TENON_API Autocast {
 public:
  // Begins the scope. Throws a DTypeError unless dtype is f16 or bf16, and a DeviceError if
  // options.device_type cannot be the name of a backend.
  explicit Autocast(DType dtype = DType::bf16, const AutocastOptions& options = {});
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  // Holds what a guard says, for code that sets it up again.
  struct Setting {
    // The device_type of a guard that is about all devices.
    static constexpr uint32_t kEveryType = ~0u;
    DType dtype;
    // The fields of AutocastOptions; device_type is a Device::type_id or kEveryType.
    bool enabled, caches;
    uint32_t device_type;
    // Returns whether both say the same.
    bool operator==(const Setting&) const = default;
  };
  // Begins the scope of a guard with the setting of another one.
  explicit Autocast(const Setting& setting);
  // Returns what this guard says.
  const Setting& setting() const { return setting_; }
  // Returns the guard around this one on this thread, or null.
  const Autocast* outer() const { return outer_; }

 private:
  const Setting setting_;
  const Autocast* const outer_;
};

// Write `NoAutocast guard;`: the operators in this scope compute in the dtypes of their inputs.
class NoAutocast : public Autocast {
 public:
  // Begins the scope.
  NoAutocast() : Autocast(DType::bf16, {.enabled = false}) {}
};

// `autocast(bf16, [&] { … })` calls the function under a guard and returns what it returns.
template <class F>
decltype(auto) autocast(DType dtype, F&& body) {
  const Autocast guard(dtype);
  return std::forward<F>(body)();
}

// Returns whether operators of this thread choose their dtype on devices of this type. Throws a
// DeviceError if it cannot be the name of a backend.
TENON_API bool autocast_enabled(const std::string& device_type = "cpu");
// Returns the dtype of the guard that counts on devices of this type, and bf16 without one. Throws
// as autocast_enabled does.
TENON_API DType autocast_dtype(const std::string& device_type = "cpu");

}  // namespace tenon
