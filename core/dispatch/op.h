// The description of an operator, and the entry point through which every operator runs. Users see
// the public functions in core/ops.
//
// An operator is one object in one file: name, shape rule, promotion and gradient rule. `run`
// converts operands, resolves devices and replicas, finds or makes the plan, queues it and records
// it for autograd. What else in the core names operators is a list of several: see docs/design.md.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/dispatch/attrs.h>
#include <tenon/core/dispatch/descriptor.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/tensor.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

// An entry is null if an optional input is absent.
using Inputs = std::span<const Tensor* const>;
using Outputs = std::vector<Tensor>;
struct Op;

// One call of an operator on its way from the public function to the plan. It owns nothing, so
// everything that it refers to has to live until the call is done.
struct Call {
  const Op& op;
  Inputs inputs;
  const Attrs& attrs = no_attrs;
  std::span<const Scalar> scalars = {};
  uint32_t wanted = ~0u;         // if bit i is 0, output i is not computed and stays undefined
  const Tensor* out = nullptr;   // the tensor for output 0, in a call of run_into
  const Shape* shape = nullptr;  // the shape of output 0, if the inputs do not determine it
  // The format of new outputs. Where it is preserve_format, the operator's rule and its inputs say
  // which it is (core/dispatch/propose.h).
  MemoryFormat format = preserve_format;

  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const Tensor& in(size_t i) const { return *inputs[i]; }
  Call with_inputs(Inputs others) const {
    return {op, others, attrs, scalars, wanted, out, shape, format};
  }
  // Returns an undefined tensor if the input is absent.
  Tensor optional(size_t i) const { return has(i) ? in(i) : Tensor(); }
};

// The argument of a shape rule, which reads the inputs and adds the outputs. It sees descriptors
// but no tensors.
class Infer {
 public:
  explicit Infer(const CallDesc& call) : op(*call.op), attrs(call.attrs), call_(call) {}
  const Op& op;
  const Attrs& attrs;

  size_t size() const { return call_.inputs.size(); }
  // Returns the shape that was passed to run_as. Throws an Error if the call was made in another
  // way.
  const Shape& given_shape() const;
  bool has(size_t i) const { return i < size() && call_.inputs[i]; }
  // Throws an Error if there is none: calls are also made from files.
  const TensorDesc& in(size_t i) const {
    if (!has(i)) refuse_input(i);
    return *call_.inputs[i];
  }
  void output(DType dtype, const Shape& shape) {
    outputs.push_back({dtype, shape, OutputKind::made, 0});
  }
  // Adds an output that is input i, changed in place.
  void output_in_place(size_t i);
  void no_output() { outputs.push_back({DType::f32, {}, OutputKind::absent, 0}); }
  // Throws a DTypeError with the names of the operator, the argument and its dtype unless `ok`. It
  // advises to convert to `remedy`.
  void require_dtype(bool ok, size_t i, const char* wanted, DType remedy = DType::f32) const;
  // Throws the ShapeError "<op>: <message>".
  [[noreturn]] void shape_error(const std::string& message) const;

  struct Output {
    DType dtype;
    Shape shape;
    OutputKind kind;
    uint32_t input;  // the input that is changed, if the kind is in_place
  };
  std::vector<Output> outputs;

 private:
  [[noreturn]] void refuse_input(size_t i) const;
  const CallDesc& call_;
};

// The argument of a gradient rule. `inputs` and `outputs` contain the tensors that the operator
// saves; the others are undefined.
class GradContext {
 public:
  const Op& op;
  const Attrs& attrs;
  std::span<const Scalar> scalars;
  std::span<const Tensor> grads;  // d/d(output i); undefined if that output has no gradient

  const Tensor& grad(size_t i = 0) const { return grads[i]; }
  const Tensor& input(size_t i) const { return inputs[i]; }
  const Tensor& output(size_t i) const { return outputs[i]; }
  // Returns whether d/d(input i) is needed. A rule should not compute the others.
  bool needs(size_t i) const { return i < needed.size() && needed[i]; }
  const Shape& input_shape(size_t i) const { return input_shapes[i]; }
  // The format that input i had, in which its gradient is best made.
  MemoryFormat input_format(size_t i) const {
    if (i >= 64 || !(inputs_with_channels_last >> i & 1)) return contiguous_format;
    return input_shapes[i].size() == 4 ? channels_last : channels_last_3d;
  }
  DType input_dtype(size_t i) const { return input_dtypes[i]; }

  std::span<const Tensor> inputs, outputs;  // what is not saved is undefined; none: no list at all
  std::span<const bool> needed;
  std::span<const Shape> input_shapes;
  std::span<const DType> input_dtypes;
  uint64_t inputs_with_channels_last;  // bit i
};

// One for each input of the operator; those that are not needed stay undefined.
using Grads = std::span<Tensor>;

// Fills gradients[i] for the inputs for which `needs` is true. It uses differentiable operators, so
// that gradients of higher order work. If a fused backward operator has no gradient of its own, the
// rule uses it only while grad_enabled() is false, and otherwise composes it of other operators.
using GradRule = void (*)(const GradContext& context, Grads gradients);
using InferRule = void (*)(Infer& infer);
// For operators without a kernel: views, and copies between devices. The inputs are passed on their
// own devices.
using ExecuteRule = void (*)(const Call& call, Outputs& outputs);
// Computes the operator by simpler ones if no plugin of the device offers it.
using DecomposeRule = void (*)(const Call& call, Outputs& outputs);

// What `run` does first if the inputs differ in dtype.
enum class Promotion : uint8_t {
  none,      // nothing; the shape rule checks the dtypes
  common,    // converts them to PyTorch's common dtype; at most two inputs take part
  floating,  // as common, and converts integers and bool to f32
};

// What an operator does with its floating inputs under an Autocast guard (core/autocast.h).
enum class AutocastRule : uint8_t {
  none,    // takes them as they are; its promotion says what happens to different dtypes
  lower,   // converts them to the dtype of the guard
  f32,     // converts half types to f32
  widest,  // converts them to the widest dtype among them
};

// Define one Op for each operator at namespace scope: `const Op add_op{{.name = "add", …}};`. It
// adds itself to `all_ops()`.
struct OpSpec {
  const char* name;
  // The names that its function gives the inputs, with blanks between them: "x weight bias". Errors
  // call them that. Without it, a single input is x, and several are numbered.
  const char* inputs = nullptr;
  InferRule infer = nullptr;
  GradRule gradient = nullptr;  // if null, the result never requires a gradient
  uint32_t saves_inputs = 0;    // bit i: the gradient rule reads input i
  uint32_t saves_outputs = 0;   // bit i: the gradient rule reads output i
  uint32_t differentiable = 1;  // bit i: output i has a gradient
  // Inputs are expanded to the shape of output 0 before the plugin sees them, and it may get their
  // dimensions in another order, that of the elements in memory. No attribute names a dimension.
  bool pointwise = false;
  // Every element of the outputs depends on its own place in the order of memory alone, so that
  // tensors of one layout without gaps count as one dimension.
  bool by_element = false;
  // Bit i: where input i has a format of channels, outputs of its rank are proposed in it.
  uint32_t keeps_format = 0;
  // In a format of channels, plugins see tensors of that rank as the matrix (elements of a channel,
  // channels), which is row-major. So it needs no plugin that knows of formats.
  bool rows_of_channels = false;
  Promotion promotion = Promotion::none;
  uint32_t keeps_types = 0;  // bit i: input i takes no part in promotion
  AutocastRule autocast = AutocastRule::none;
  // An attribute that only the rules of the core read. Plugins do not get it, because they refuse
  // attributes that they do not know.
  const char* core_attr = nullptr;
  ExecuteRule execute = nullptr;
  DecomposeRule decompose = nullptr;
  // A call in a half type that no plugin offers, not in f32 either, is decomposed in the half type.
  // Without this, it is decomposed in f32 and rounded once, which is more exact, but does not use
  // what the device has for half types, such as products of matrices.
  bool decomposes_halves = false;
  // How many numbers a call has: `scalars`, or what `count_scalars` reads from its attributes. One
  // more takes the place of input `number_for`, where that is absent.
  uint8_t scalars = 0;
  int8_t number_for = -1;
  size_t (*count_scalars)(const Attrs& attrs) = nullptr;
  // The first two numbers of a call are the seed and the offset of next_random().
  bool draws = false;
  // The names of all numbers of a call, with blanks between them, for operators that are the step
  // of an optimizer: those of its options, "lr momentum", and of these two, which are whole
  // numbers: "step", the number of the step, which counts from 1, and "first", whether it is the
  // first. With it, a program that is stored can count steps, and be given another learning rate.
  const char* numbers = nullptr;
  // Where no plugin of the device offers it, it is computed on the CPU, whatever TENON_CPU_FALLBACK
  // says: for operators that cannot be decomposed and that few backends have.
  bool offered_by_cpu = false;
};
struct Op : OpSpec {
  explicit Op(const OpSpec& spec);
  Op(const Op&) = delete;
  const Op* next = nullptr;  // the next in the list of all operators

 protected:
  // For operators of users, which are not among `all_ops()`.
  struct Unlisted {};
  Op(const OpSpec& spec, Unlisted) : OpSpec(spec) {}
};
// Returns the first of all operators, which are linked through `next`.
TENON_API const Op* all_ops();
// Returns whether the operator is among them, and not a user's that has the name of one.
bool is_of_library(const Op& op);

// Returns what errors call an input of a call that has `count`: "weight", or "argument 1".
std::string input_name(const Op& op, size_t i, size_t count);
// Throws an Error unless the call has as many numbers as its operator says. Kernels rely on it.
void require_scalars(const CallDesc& call);

// The entry points: `run` for operators with one output, `run_all` for any number.
Tensor run(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs = no_attrs,
           std::initializer_list<Scalar> scalars = {});
Outputs run_all(const Call& call);
// For operators with one output whose shape the inputs do not determine, such as a gradient or a
// view. The shape rule of those that run a kernel is infer_given_shape.
Tensor run_as(const Shape& shape, const Op& op, std::initializer_list<const Tensor*> inputs,
              const Attrs& attrs = no_attrs, MemoryFormat format = preserve_format);
// Writes into `out` instead of a new tensor, for the mutators. It is not recorded, and increments
// the version. If an input was never computed, an existing target keeps its values; a part of a new
// result has none and is poisoned.
enum class Target { existing, new_result };
void run_into(const Tensor& out, const Call& call, Target kind = Target::existing);
// Returns whether `run` would decompose the call, because no plugin of the device offers it.
bool is_decomposed(const Call& call);
// Makes the plan of a call of run_into, so that the call itself cannot fail because it has no plan.
void prepare_into(const Tensor& out, const Call& call);
// Returns a tensor that shares the storage of `base`, for the ExecuteRules of views. `offset` is in
// elements from the first element of `base`.
Tensor make_view(const Tensor& base, const Shape& shape, const Strides& strides, int64_t offset);

// ---- helpers for the rules ----

// Returns `dim` as a number in [0, rank); a negative one counts from the end. Throws the IndexError
// "<op>: dim 3 is out of range for a tensor of 2 dimensions…".
int64_t wrap_dim(int64_t dim, int64_t rank, const char* op);
// Returns the advice "convert it with .to(tenon::f32)".
std::string conversion_to(DType dtype, const char* what = "it");
// Sums a gradient over the dimensions that broadcasting expanded, so that it has the shape `shape`.
Tensor sum_to(const Tensor& gradient, const Shape& shape);

}  // namespace tenon
