// How an operator is described, and the one door that every operator goes through. Not installed:
// users see the public functions.
//
// An operator is one object in one file: name, shape rule, gradient rule. `run` resolves devices
// and replicas, infers, finds or makes the plan, queues it and records it for autograd. Nothing
// else in the core knows any operator by name.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include <tenon/core/grad_mode.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// A static argument; `name` and `s` are literals.
struct Attr {
  const char* name;
  tn_attr_kind kind;
  uint32_t num_ints;
  int64_t i;
  double f;
  const char* s;
  int64_t ints[Shape::max_rank];

  Shape list() const { return Shape(std::span<const int64_t>(ints, num_ints)); }
};

// Up to eight attributes in place; no allocation. `Attrs().set("stride", Shape{1, 1}).set("groups",
// int64_t{1})`.
class Attrs {
 public:
  Attrs() {}
  Attrs(const Attrs& o) : count_(o.count_) {
    std::copy_n(o.items_, count_, items_);
  }  // used slots only
  Attrs& operator=(const Attrs& o) {
    count_ = o.count_;
    std::copy_n(o.items_, count_, items_);
    return *this;
  }
  Attrs& set(const char* name, int64_t value);
  Attrs& set(const char* name, int value) { return set(name, static_cast<int64_t>(value)); }
  Attrs& set(const char* name, double value);
  Attrs& set(const char* name, bool value);
  Attrs& set(const char* name, const char* literal);
  Attrs& set(const char* name, const Shape& list);

  int64_t get_int(std::string_view name) const { return at(name).i; }
  double get_float(std::string_view name) const { return at(name).f; }
  bool get_bool(std::string_view name) const { return at(name).i != 0; }
  std::string_view get_string(std::string_view name) const { return at(name).s; }
  Shape get_list(std::string_view name) const { return at(name).list(); }
  bool has(std::string_view name) const;

  std::span<const Attr> all() const { return {items_, count_}; }

 private:
  const Attr& at(std::string_view name) const;
  Attr& add(const char* name, tn_attr_kind kind);

  uint32_t count_ = 0;
  Attr items_[8];  // left uninitialised on purpose: most operators have none
};

// A dynamic argument.
struct Scalar {
  tn_scalar value;  // the only member: lists of them are handed to plugins as they are
  Scalar() : value{0.0} {}
  Scalar(double f) : value{.f = f} {}
  static Scalar integer(int64_t i) {
    Scalar s;
    s.value.i = i;
    return s;
  }
};
static_assert(sizeof(Scalar) == sizeof(tn_scalar));

using Inputs =
    std::span<const Tensor* const>;  // an entry is null where an optional input is absent

// What a shape rule is given and fills in.
class Infer {
 public:
  Infer(const struct Op& op, Inputs inputs, const Attrs& attrs)
      : op(op), inputs(inputs), attrs(attrs) {}
  const Op& op;
  Inputs inputs;
  const Attrs& attrs;

  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const Tensor& in(size_t i) const { return *inputs[i]; }
  void output(DType dtype, const Shape& shape) { outputs.push_back({dtype, shape, -1}); }
  // Output that is input i, changed in place.
  void output_alias(size_t i);
  void no_output() { outputs.push_back({DType::f32, {}, -2}); }  // absent
  // Throws DTypeError naming the operator, the argument and its type unless `ok`.
  void require_dtype(bool ok, size_t i, const char* wanted) const;
  // ShapeError: "<op>: <message>".
  [[noreturn]] void shape_error(const std::string& message) const;

  struct Output {
    DType dtype;
    Shape shape;
    int32_t alias;
  };
  std::vector<Output> outputs;
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

// Fills gradients[i] for the inputs that `needs` names, by differentiable operators, so that higher
// orders work. Where a fused backward operator has no gradient of its own, the rule uses it only
// while grad_enabled() is false and composes otherwise.
using GradRule = void (*)(const GradContext& context, std::span<Tensor> gradients);
using InferRule = void (*)(Infer& infer);
// For operators that are no kernel: views, copies between devices. Gets inputs on their own
// devices.
using ExecuteRule = void (*)(const Op& op, Inputs inputs, const Attrs& attrs,
                             std::vector<Tensor>& outputs);
// Computes the operator by simpler ones where the device's plugin does not offer it.
using DecomposeRule = void (*)(Inputs inputs, const Attrs& attrs, std::span<const Scalar> scalars,
                               std::vector<Tensor>& outputs);

// Make one per operator at namespace scope: `const Op add_op{{.name = "add", …}};`. It lists itself
// in `all_ops()`.
struct OpSpec {
  const char* name;
  InferRule infer = nullptr;
  GradRule gradient = nullptr;  // none: the result never requires a gradient
  uint32_t saves_inputs = 0;    // bit i: the gradient rule reads input i
  uint32_t saves_outputs = 0;   // bit i: … output i
  uint32_t differentiable = 1;  // bit i: output i carries a gradient
  bool pointwise =
      false;  // inputs are expanded to the shape of output 0 before the plugin sees them
  ExecuteRule execute = nullptr;
  DecomposeRule decompose = nullptr;
};
struct Op : OpSpec {
  explicit Op(const OpSpec& spec);
  Op(const Op&) = delete;
  const Op* next = nullptr;  // of the list of all operators
};
// Head of the list of all operators, linked through `next`.
const Op* all_ops();

// The door. `run` is for one output, `run_all` for several; bit i of `wanted` cleared: output i is
// left out (undefined in the result).
Tensor run(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs = {},
           std::initializer_list<Scalar> scalars = {});
std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs = {},
                            std::span<const Scalar> scalars = {}, uint32_t wanted = ~0u);
// Writes into `out` instead of a new tensor: for the mutators. Not recorded; raises the version.
// Where an input was never made, a target in use keeps its values; a part of a result in the making
// has none, and is poisoned.
enum class Target { in_use, in_the_making };
void run_into(const Op& op, Inputs inputs, const Tensor& out, const Attrs& attrs = {},
              std::span<const Scalar> scalars = {}, Target kind = Target::in_use);
// Makes the plan of such a call, so that the call itself cannot fail for want of one.
void prepare_into(const Op& op, Inputs inputs, const Tensor& out, const Attrs& attrs = {},
                  size_t num_scalars = 0);
// A tensor that shares `base`'s storage. `offset` in elements from the base's first. For
// ExecuteRules of views.
Tensor make_view(const Tensor& base, const Shape& shape, const Strides& strides, int64_t offset);

// ---- help for the rules ----
// dim in [0, rank), from a possibly negative one; IndexError "<op>: dim 3 is out of range for a
// tensor of 2 dimensions…".
int64_t wrap_dim(int64_t dim, int64_t rank, const char* op);
// ValueError where a tensor is undefined: "<op>: argument <i> is an undefined tensor".
void require_defined(const char* op, std::initializer_list<const Tensor*> tensors);
// Whether several elements are one place in memory, as in an expanded tensor: it must not be
// changed in place.
bool shares_places(const Tensor& tensor);
// Sums a gradient over what broadcasting expanded, down to `shape`.
Tensor sum_to(const Tensor& gradient, const Shape& shape);

}  // namespace tenon
