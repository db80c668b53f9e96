// What a line of the table of operators says (conformance/cases/<family>.h). The driver (driver.h)
// runs every line on every device: against PyTorch's results, against finite differences, and
// against the cpu in each dtype and memory layout, with the shapes of its variants and with others.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <tenon/core/number.h>
#include <tenon/core/pair.h>
#include <tenon/core/tensor.h>

namespace tenon::conformance {

using nlohmann::json;

// Tensors in, tensors out. A case file may have fewer than the operator takes.
struct List : std::vector<Tensor> {
  using std::vector<Tensor>::vector;
  List(std::vector<Tensor> tensors) : std::vector<Tensor>(std::move(tensors)) {}
  Tensor& operator[](size_t i) { return begin()[checked(i)]; }
  const Tensor& operator[](size_t i) const { return begin()[checked(i)]; }

 private:
  // Throws a ValueError if there is no tensor i.
  std::ptrdiff_t checked(size_t i) const;
};

// ---- how an operator is called ----

// A function of PyTorch's arguments that are no tensors, and of the tensors. The same call serves
// the reference cases and the variants of the table.
class Call {
 public:
  using General = List (*)(const json& args, const List& in);
  using Unary = Tensor (*)(const Tensor&);
  using Binary = Tensor (*)(const Tensor&, const Tensor&);
  using OverDims = Tensor (*)(const Tensor&, const Shape& dims, bool keepdim);
  using AlongDim = Tensor (*)(const Tensor&, int64_t dim);
  using WithNumber = Tensor (*)(const Tensor&, Number);
  using NumberFirst = Tensor (*)(Number, const Tensor&);

  using Form = std::variant<General, Unary, Binary, OverDims, AlongDim, WithNumber, NumberFirst>;

  Call(General f) : form_(f) {}
  explicit Call(Form form) : form_(form) {}

  List operator()(const json& args, const List& in) const;

 private:
  Form form_;
};
// They choose the overload of a function that has this form.
inline Call one(Call::Unary f) { return Call(Call::Form(f)); }
inline Call two(Call::Binary f) { return Call(Call::Form(f)); }
// Arguments "dim" (default: all) and "keepdim".
inline Call over_dims(Call::OverDims f) { return Call(Call::Form(f)); }
// Argument "dim".
inline Call along(Call::AlongDim f) { return Call(Call::Form(f)); }
// Argument "number", an integer, a real number or "nan".
inline Call with_number(Call::WithNumber f) { return Call(Call::Form(f)); }
inline Call number_first(Call::NumberFirst f) { return Call(Call::Form(f)); }

// ---- parts of calls ----

Shape shape_of(const json& list);
// Throws unless the list has two numbers.
Pair pair_of(const json& list);
// "dim" as a list; empty, which stands for all, where it is absent.
Shape dims_of(const json& args);
inline bool keeps_dims(const json& args) { return args.value("keepdim", false); }
Number number_of(const json& value);
// An optional input: undefined where it was not given.
inline Tensor at(const List& in, size_t i) { return i < in.size() ? in[i] : Tensor(); }
// Numbers of the arguments as a tensor with x's dtype and device.
Tensor like(const json& values, const Tensor& x);

// ---- dtypes ----

inline constexpr DType kEvery[] = {f32, f64, f16, bf16, i64, i32, u8, boolean};
// A set of dtypes, a bit each.
using Types = uint32_t;
constexpr Types set_of(std::initializer_list<DType> list) {
  Types set = 0;
  for (DType t : list) set |= 1u << static_cast<uint32_t>(t);
  return set;
}
constexpr bool contains(Types set, DType t) { return set >> static_cast<uint32_t>(t) & 1; }
constexpr Types kNoTypes = 0, kF32 = set_of({f32}), kF64 = set_of({f64}),
                kReals = set_of({f32, f64}), kHalves = set_of({f16, bf16}),
                kFloats = kReals | kHalves, kIntegers = set_of({i64, i32, u8}),
                kBool = set_of({boolean}), kNumbers = kFloats | kIntegers, kAll = kNumbers | kBool;

// ---- tolerances: |found - expected| <= t + t |expected| ----

struct Tolerance {
  double f32, f64, f16, bf16;
  double of(DType t) const;
};
constexpr Tolerance kExact = {0, 0, 0, 0};
// A few units in the last place: functions of one element.
constexpr Tolerance kRounding = {2e-6, 1e-14, 1e-3, 8e-3};
constexpr Tolerance kPowers = {2e-5, 1e-12, 1e-3, 8e-3};
// Sums of many numbers, in whatever order.
constexpr Tolerance kSums = {2e-5, 1e-11, 4e-3, 3e-2};
// For sums that are normalized, or of many products.
constexpr Tolerance kLongSums = {2e-4, 1e-10, 4e-3, 4e-2};

// ---- inputs ----

enum class Values {
  any,       // a few zeros of both signs, infinities, NaN, the smallest and the largest among them
  sums,      // the same without the largest: the order of a sum does not matter
  ordinary,  // normally distributed, or small integers
  positive,  // above 0.2
  near_one,  // products of many stay numbers
  lowest,    // -infinity throughout
  steps,     // whole numbers, many equal
  flags,     // bool
  index,     // i64 in [0, bound)
  constant,  // positive, and never differentiated: weights of classes, running statistics
  absent,    // an optional input that is not given
};
struct In {
  In(std::initializer_list<int64_t> dims) : shape(dims) {}
  In(const Shape& dims, Values kind = Values::any, int64_t bound = 0)
      : shape(dims), values(kind), bound(bound) {}
  Shape shape;
  Values values = Values::any;
  int64_t bound = 0;
};
inline In ordinary(const Shape& shape) { return {shape, Values::ordinary}; }
inline In positive_in(const Shape& shape) { return {shape, Values::positive}; }
inline In steps(const Shape& shape) { return {shape, Values::steps}; }
inline In flags(const Shape& shape) { return {shape, Values::flags}; }
inline In index_in(const Shape& shape, int64_t bound) { return {shape, Values::index, bound}; }
inline In constant(const Shape& shape) { return {shape, Values::constant}; }
inline In absent() { return {Shape{}, Values::absent}; }

// One set of arguments and inputs. Small ones (at most 48 floating elements) are differentiated by
// finite differences too.
struct Variant {
  std::string args;  // JSON, with ' for "; empty: no arguments
  std::vector<In> in;
  Types types =
      kAll;  // of the line's, those that this variant is for; kF32: large, always run once
  bool large = false;  // it computes much, although no input has as many elements
};

// What most lines need not say.
struct LineOptions {
  // For finite differences of first order, ten times as much for the second; 0: no gradient.
  double difference = 2e-6;
  // Dtypes that only devices with units for them take: compared with the cpu's f64.
  Types types_elsewhere = kNoTypes;
  // Dtypes that the core computes in f32 where a backend does not take them. They are looked at on
  // the cpu, against its f64 and with gradients; on other devices where that is asked for.
  Types types_of_cpu = kNoTypes;
  Values values = Values::any;  // of inputs that do not say
  // Why PyTorch's files have no case for it. Without a reason, a missing case is an error.
  const char* no_reference = nullptr;
  const char* op = nullptr;  // the Op's name, where it is not `name`
  // The names of the inputs in order, with spaces between: "input weight bias". Needed where a case
  // may leave one out. The last takes the elements of a list: "tensors" those named "tensors.0", …
  const char* inputs = nullptr;
  bool results_in_f64 = false;  // real ones, whatever the dtypes of the inputs
  bool every_layout = false;    // all pairs of layouts of the first two inputs
  bool distinct =
      false;  // no layouts in which elements share one place: there slopes are 0, or rounding
  // Results, or what is made on the way to them, are larger than inputs, as a product: random
  // shapes are small.
  bool growing = false;
  // A product of matrices: nothing that is made is larger than operands and results, and an extent
  // that several inputs have in common, such as what is summed over, counts once.
  bool matrix_product = false;
};

struct Line : LineOptions {
  // `name`: PyTorch's, as in the reference files. `types`: dtypes that the cpu takes as well.
  Line(const char* name, Call call, Types types, std::vector<Variant> variants,
       const Tolerance& tolerance, const LineOptions& options = {})
      : LineOptions(options),
        name(name),
        call(call),
        types(types),
        variants(std::move(variants)),
        tolerance(tolerance) {}
  Line(const char* name, Call call, Types types, std::vector<Variant> variants,
       const LineOptions& options = {})
      : Line(name, call, types, std::move(variants), kRounding, options) {}

  const char* name;
  Call call;
  Types types;
  std::vector<Variant> variants;  // none: the reference cases are all
  Tolerance tolerance;
};

// The lines of a family: "reduction".
struct Family {
  const char* name;
  std::vector<Line> lines;
};
// The whole table.
const std::vector<Family>& table();

// The same inputs for many lines.
std::vector<Variant> shapes_of_one();  // one tensor, around the sizes of vectors, blocks and tiles
std::vector<Variant> shapes_of_two();  // two of one shape, and two that broadcast

}  // namespace tenon::conformance
