// How an operator is described, and the one door that every operator goes through. Users see the
// public functions in core/ops.
//
// An operator is one object in one file: name, shape rule, promotion, gradient rule. `run` converts
// operands, resolves devices and replicas, finds or makes the plan, queues it and records it for
// autograd. Nothing else in the core knows any operator by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include <tenon/core/dispatch/attrs.h>
#include <tenon/core/dispatch/descriptor.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// An entry is null where an optional input is absent.
using Inputs = std::span<const Tensor* const>;
using Outputs = std::vector<Tensor>;
struct Op;

// One call of an operator, as it travels from the public function to the plan. It owns nothing, so
// what it is made of has to live until the call is done.
struct Call {
  const Op& op;
  Inputs inputs;
  const Attrs& attrs = no_attrs;
  std::span<const Scalar> scalars = {};
  uint32_t wanted = ~0u;         // bit i cleared: output i is left out, undefined in the result
  const Tensor* out = nullptr;   // where output 0 goes, in a call of run_into
  const Shape* shape = nullptr;  // of output 0, for operators whose inputs do not say it

  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const Tensor& in(size_t i) const { return *inputs[i]; }
  Call with_inputs(Inputs others) const { return {op, others, attrs, scalars, wanted, out, shape}; }
  // Undefined where it is absent.
  Tensor optional(size_t i) const { return has(i) ? in(i) : Tensor(); }
};

// What a shape rule is given and fills in. It sees descriptors and no tensor.
class Infer {
 public:
  explicit Infer(const CallDesc& call) : op(*call.op), attrs(call.attrs), call_(call) {}
  const Op& op;
  const Attrs& attrs;

  size_t size() const { return call_.inputs.size(); }
  // What run_as was given; an Error where the call came another way.
  const Shape& given_shape() const;
  bool has(size_t i) const { return i < size() && call_.inputs[i]; }
  const TensorDesc& in(size_t i) const { return *call_.inputs[i]; }
  void output(DType dtype, const Shape& shape) {
    outputs.push_back({dtype, shape, OutputKind::made, 0});
  }
  // Output that is input i, changed in place.
  void output_in_place(size_t i);
  void no_output() { outputs.push_back({DType::f32, {}, OutputKind::absent, 0}); }
  // Throws DTypeError naming the operator, the argument and its type unless `ok`.
  void require_dtype(bool ok, size_t i, const char* wanted) const;
  // ShapeError: "<op>: <message>".
  [[noreturn]] void shape_error(const std::string& message) const;

  struct Output {
    DType dtype;
    Shape shape;
    OutputKind kind;
    uint32_t input;  // where it is in place
  };
  std::vector<Output> outputs;

 private:
  const CallDesc& call_;
};

// What a gradient rule is given. `inputs` and `outputs` hold what the operator said it saves;
// others are undefined.
class GradContext {
 public:
  const Op& op;
  const Attrs& attrs;
  std::span<const Scalar> scalars;
  std::span<const Tensor> grads;  // d/d(output i); undefined where nothing flowed into that output

  const Tensor& grad(size_t i = 0) const { return grads[i]; }
  const Tensor& input(size_t i) const { return inputs[i]; }
  const Tensor& output(size_t i) const { return outputs[i]; }
  // Whether d/d(input i) is wanted; a rule should not compute what is not.
  bool needs(size_t i) const { return i < needed.size() && needed[i]; }
  const Shape& input_shape(size_t i) const { return input_shapes[i]; }
  DType input_dtype(size_t i) const { return input_dtypes[i]; }

  std::span<const Tensor> inputs, outputs;
  std::span<const bool> needed;
  std::span<const Shape> input_shapes;
  std::span<const DType> input_dtypes;
};

// One for each input of the operator; those that nobody needs stay undefined.
using Grads = std::span<Tensor>;

// Fills gradients[i] for the inputs that `needs` names, by differentiable operators, so that higher
// orders work. Where a fused backward operator has no gradient of its own, the rule uses it only
// while grad_enabled() is false and composes otherwise.
using GradRule = void (*)(const GradContext& context, Grads gradients);
using InferRule = void (*)(Infer& infer);
// For operators that are no kernel: views, copies between devices. Gets inputs on their own
// devices.
using ExecuteRule = void (*)(const Call& call, Outputs& outputs);
// Computes the operator by simpler ones where the device's plugin does not offer it.
using DecomposeRule = void (*)(const Call& call, Outputs& outputs);

// What `run` does before anything else where inputs differ in type.
enum class Promotion : uint8_t {
  none,      // nothing: the shape rule says which types it takes
  common,    // converts them to the type that PyTorch promotes them to; at most two take part
  floating,  // as common, and whole numbers and bool to f32
};

// Make one per operator at namespace scope: `const Op add_op{{.name = "add", …}};`. It lists itself
// in `all_ops()`.
struct OpSpec {
  const char* name;
  InferRule infer = nullptr;
  GradRule gradient = nullptr;  // none: the result never requires a gradient
  uint32_t saves_inputs = 0;    // bit i: the gradient rule reads input i
  uint32_t saves_outputs = 0;   // bit i: … output i
  uint32_t differentiable = 1;  // bit i: output i carries a gradient
  // Inputs are expanded to the shape of output 0 before the plugin sees them.
  bool pointwise = false;
  Promotion promotion = Promotion::none;
  uint32_t keeps_types = 0;  // bit i: input i takes no part in promotion
  ExecuteRule execute = nullptr;
  DecomposeRule decompose = nullptr;
};
struct Op : OpSpec {
  explicit Op(const OpSpec& spec);
  Op(const Op&) = delete;
  const Op* next = nullptr;  // of the list of all operators
};
// Head of the list of all operators, linked through `next`.
TENON_API const Op* all_ops();

// The door. `run` is for one output, `run_all` for several.
Tensor run(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs = no_attrs,
           std::initializer_list<Scalar> scalars = {});
Outputs run_all(const Call& call);
// For one output whose shape the inputs do not say, as that of a gradient: the rule is
// infer_given_shape.
Tensor run_as(const Shape& shape, const Op& op, std::initializer_list<const Tensor*> inputs,
              const Attrs& attrs = no_attrs);
// Writes into `out` instead of a new tensor: for the mutators. Not recorded; raises the version.
// Where an input was never made, a target in use keeps its values; a part of a result in the making
// has none, and is poisoned.
enum class Target { in_use, in_the_making };
void run_into(const Tensor& out, const Call& call, Target kind = Target::in_use);
// Makes the plan of such a call, so that the call itself cannot fail for want of one.
void prepare_into(const Tensor& out, const Call& call);
// A tensor that shares `base`'s storage. `offset` in elements from the base's first. For
// ExecuteRules of views.
Tensor make_view(const Tensor& base, const Shape& shape, const Strides& strides, int64_t offset);

// ---- help for the rules ----
// dim in [0, rank), from a possibly negative one; IndexError "<op>: dim 3 is out of range for a
// tensor of 2 dimensions…".
int64_t wrap_dim(int64_t dim, int64_t rank, const char* op);
// ValueError where a tensor is undefined: "<op>: argument <i> is an undefined tensor".
void require_defined(const char* op, std::initializer_list<const Tensor*> tensors);
// Sums a gradient over what broadcasting expanded, down to `shape`.
Tensor sum_to(const Tensor& gradient, const Shape& shape);

}  // namespace tenon
