// Operators that a user's library adds: Tenon gives them the way of its own operators, from plans
// over traces to gradients, and plugins give them kernels.
//
//   const custom::Op swish2_op({
//       .name = "mylib::swish2",
//       .infer = [](const custom::InferContext& c) { return std::vector{c.input(0)}; },
//       .decompose = [](const custom::CallContext& c) {
//         const Tensor& x = c.input(0);
//         return std::vector{x * sigmoid(x * c.attributes.get_float("beta"))};
//       },
//   });
//   Tensor swish2(const Tensor& x, double beta) {
//     return swish2_op({x}, custom::Attributes().set("beta", beta));
//   }
//
// docs/custom_operators.md goes through an example with a kernel.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <tenon/core/dtype.h>
#include <tenon/core/shape.h>
#include <tenon/core/tensor.h>

namespace tenon::custom {

// The arguments of a call that are no tensors, which plugins get by their names. A plan is made for
// each combination of values, so an argument that differs in every call should be a tensor.
class TENON_API Attributes {
 public:
  // Sets an attribute and returns this object, so that calls can be chained. There are at most
  // eight; one more is a ValueError. A bool stays a bool, and other integers become int64.
  template <std::integral I>
  Attributes& set(std::string_view name, I value) {
    if constexpr (std::same_as<I, bool>)
      return set_value(name, value);
    else
      return set_value(name, static_cast<int64_t>(value));
  }
  // Do the same for a number of floating point, a text and a list of integers.
  Attributes& set(std::string_view name, double value) { return set_value(name, value); }
  Attributes& set(std::string_view name, const char* value) {
    return set_value(name, std::string(value));
  }
  Attributes& set(std::string_view name, const Shape& list) { return set_value(name, list); }
  // Returns an integer. Throws a ValueError if there is no attribute of this name and type, as all
  // of these do.
  int64_t get_int(std::string_view name) const;
  // Returns a number of floating point.
  double get_float(std::string_view name) const;
  // Returns a bool.
  bool get_bool(std::string_view name) const;
  // Returns a text.
  std::string get_string(std::string_view name) const;
  // Returns a list of integers.
  Shape get_list(std::string_view name) const;

  // The type of an attribute.
  using Value = std::variant<bool, int64_t, double, std::string, Shape>;
  // Returns all attributes by their names.
  const std::map<std::string, Value, std::less<>>& all() const { return values_; }

 private:
  Attributes& set_value(std::string_view name, Value value);
  std::map<std::string, Value, std::less<>> values_;
};

// The dtype and shape of a tensor, without its values.
struct TensorMeta {
  DType dtype;
  Shape shape;
};

// Gives the shape rule what it may depend on, which is no value. The rule runs once for each plan;
// if the operator is pointwise, for each call.
class TENON_API InferContext {
 public:
  // The inputs and attributes of the call.
  std::span<const TensorMeta> inputs;
  const Attributes& attributes;
  // Returns an input. Throws a ValueError that names the operator if there is none.
  const TensorMeta& input(size_t i) const;
  // Throws the ShapeError "mylib::swish2: <message>".
  [[noreturn]] void shape_error(const std::string& message) const;
  // Throws the DTypeError "mylib::swish2: <message>".
  [[noreturn]] void dtype_error(const std::string& message) const;
  // The name of the operator.
  const char* name;
};

// Gives a decomposition the tensors of the call.
class TENON_API CallContext {
 public:
  // The inputs and attributes of the call.
  std::span<const Tensor> inputs;
  const Attributes& attributes;
  // Returns an input. Throws a ValueError that names the operator if there is none.
  const Tensor& input(size_t i) const;
  // The name of the operator.
  const char* name;
};

// Gives the gradient rule the gradients of the outputs, and of the inputs and outputs those that
// the definition says it saves; the others are undefined.
class TENON_API GradientContext {
 public:
  // The gradient of each output; undefined if it has none.
  std::span<const Tensor> grads;
  // The inputs and outputs of the call.
  std::span<const Tensor> inputs, outputs;
  // Tells for each input whether its gradient is wanted.
  std::span<const bool> needed;
  // The attributes of the call.
  const Attributes& attributes;
};

// Says what an operator does with its floating inputs under an Autocast guard: it takes them as
// they are; converts them to the dtype of the guard; converts half types to f32; or converts them
// to the widest dtype among them. Inputs of f64 are never converted. The rules of the operator see
// the inputs converted, and compute with the dtypes that they have.
enum class CastInputs : uint8_t { none, lower, f32, widest };

// Defines everything of an operator but its kernels.
struct Definition {
  // Sets the name of the operator, "library::operator", of a-z, 0-9 and _. Plugins know it by this
  // name.
  std::string name;
  // Returns the outputs, one to 32. It checks the inputs, too: by its errors users learn what is
  // wrong with a call.
  std::function<std::vector<TensorMeta>(const InferContext&)> infer;
  // Computes the outputs by other operators where no plugin of the device has a kernel. Without it
  // such a call is an UnsupportedError.
  std::function<std::vector<Tensor>(const CallContext&)> decompose = {};
  // Returns the gradient of each input, undefined where there is none or where it is not needed.
  // Made of differentiable operators, it has gradients of higher order. Where a pointwise operator
  // broadcasts, they have the shape of the output, and are summed. Without a rule the results
  // require no gradient.
  std::function<std::vector<Tensor>(const GradientContext&)> gradient = {};
  // List the positions of the inputs and outputs that the gradient rule reads.
  std::vector<size_t> saves_inputs = {}, saves_outputs = {};
  // True says that each element of the one output depends on the same element of the inputs, which
  // broadcast to its shape: plugins get them expanded, and as one dimension where they have no
  // gaps.
  bool pointwise = false;
  // Says what the operator does under an Autocast guard.
  CastInputs autocast = CastInputs::none;
};

// An operator. Make one at namespace scope of your library, which must not be unloaded: plans and
// graphs refer to its rules as long as the process lives. Rules may be called by any thread,
// several at once. Copies name the same operator.
class TENON_API Op {
 public:
  // Registers the operator. Throws a ValueError for a name of another form or one that is taken,
  // and for a definition that has no shape rule or saves what there cannot be.
  explicit Op(Definition definition);

  // Calls the operator, which is recorded if a gradient is wanted, and returns its one output.
  // Throws what the shape rule throws, a ValueError for an undefined tensor or if there are several
  // outputs, a DeviceError for tensors on different devices, and an UnsupportedError if nobody can
  // compute it.
  Tensor operator()(std::vector<Tensor> inputs, const Attributes& attributes = {}) const;
  // Calls the operator and returns all of its outputs. Throws as above.
  std::vector<Tensor> call(std::vector<Tensor> inputs, const Attributes& attributes = {}) const;
  // Returns the name in the definition.
  const std::string& name() const;

 private:
  struct Registered;
  const Registered* op_;  // never destroyed
};

}  // namespace tenon::custom
