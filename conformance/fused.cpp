#include <cstring>
#include <string>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/compare.h>
#include <tenon/conformance/fused.h>
#include <tenon/core/format.h>

namespace tenon::conformance {

namespace {

// By the bits of an element, which are one, two, four or eight bytes.
bool is_nan(DType dtype, uint64_t bits) {
  const auto above = [&](uint64_t magnitude, uint64_t infinity) {
    return (bits & magnitude) > infinity;
  };
  switch (dtype) {
    case DType::f32:
      return above(0x7fffffff, 0x7f800000);
    case DType::f64:
      return above(0x7fffffffffffffff, 0x7ff0000000000000);
    case DType::f16:
      return above(0x7fff, 0x7c00);
    case DType::bf16:
      return above(0x7fff, 0x7f80);
    default:
      return false;
  }
}

void require_bits_of_members(const Tensor& found, const Tensor& expected, const std::string& what) {
  if (found.dtype() != expected.dtype() || !(found.shape() == expected.shape()))
    throw Mismatch(fmt::format("{} is {} {}, and of the members one by one {} {}", what,
                               found.dtype(), found.shape(), expected.dtype(), expected.shape()));
  const auto a = bytes_of(found), b = bytes_of(expected);
  const size_t size = size_of(found.dtype());
  for (size_t at = 0; at < a.size(); at += size) {
    uint64_t x = 0, y = 0;
    std::memcpy(&x, a.data() + at, size);
    std::memcpy(&y, b.data() + at, size);
    if (x != y && !(is_nan(found.dtype(), x) && is_nan(found.dtype(), y)))
      throw Mismatch(fmt::format("{}: element {} has the bits {}, and by the members one by one {}",
                                 what, at / size, x, y));
  }
}

}  // namespace

FusedValue FusedCase::in(const Tensor& x) {
  if (!x.defined())
    throw ValueError(fmt::format("fused: argument {} is an undefined tensor", inputs_.size()));
  inputs_.push_back(x);
  return builder_.input(x.dtype());
}

FusedValue FusedCase::in_copy(const Tensor& x) { return in(x.defined() ? copied(x) : x); }

FusedValue FusedCase::of(std::string_view op, const std::vector<FusedValue>& operands,
                         const std::vector<double>& numbers, std::string_view attr, int64_t value) {
  const bool floating = is_floating_point(dtype_of(operands.at(0)));
  const FusedValue made = builder_.step(op, operands, numbers.size(), attr, value);
  for (double number : numbers)
    scalars_.push_back(floating ? Scalar(number) : Scalar::integer(static_cast<int64_t>(number)));
  return made;
}

FusedValue FusedCase::with(std::string_view op, FusedValue a, double number) {
  return of(op, {a, {}}, {number}, "reverse", false);
}
FusedValue FusedCase::after(double number, std::string_view op, FusedValue a) {
  return of(op, {a, {}}, {number}, "reverse", true);
}
FusedValue FusedCase::cast(FusedValue a, DType dtype) {
  return of("copy", {a}, {}, "dtype", static_cast<int64_t>(dtype));
}

void FusedCase::out(FusedValue step, FusedValue over) {
  builder_.output(step);
  over_.push_back(over.kind == FusedValue::input ? static_cast<int32_t>(over.index) : -1);
}

List FusedCase::run() {
  const FusedProgram& program = builder_.finish();
  std::vector<const Tensor*> inputs;
  for (auto& x : inputs_) inputs.push_back(&x);
  const auto expected = run_members(program, inputs, scalars_);
  const auto found = run_fused(program, inputs, scalars_, over_);
  for (size_t i = 0; i < found.size(); ++i) {
    require_bits_of_members(found[i], expected[i],
                            fmt::format("output {} of {}", i, program.text()));
    if (over_[i] >= 0 && !found[i].is_same(inputs_[static_cast<size_t>(over_[i])]))
      throw Mismatch(fmt::format("output {} is another tensor than it overwrites", i));
  }
  return {found.begin(), found.end()};
}

}  // namespace tenon::conformance
