// Cases of promotion: one operator and one left operand, with right operands of each dtype or with
// numbers. What counts is the dtype of each result, and its values within two units of that.
#include <cmath>

#include <fmt/core.h>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case_files.h>
#include <tenon/conformance/driver.h>
#include <tenon/conformance/findings.h>
#include <tenon/core/ops/pointwise.h>

namespace tenon::conformance {

namespace {

struct Promoted {
  const char* op;
  Call::Binary tensors;
  Call::WithNumber number;
};
constexpr Promoted kPromoted[] = {{"add", add, add},
                                  {"mul", mul, mul},
                                  {"div", div, div},
                                  {"pow", pow, pow},
                                  {"maximum", maximum, maximum},
                                  {"eq", eq, eq},
                                  {"lt", lt, lt}};

DType dtype_called(const std::string& name) {
  for (auto& [known, dtype] :
       std::initializer_list<std::pair<const char*, DType>>{{"float32", f32},
                                                            {"float64", f64},
                                                            {"float16", f16},
                                                            {"bfloat16", bf16},
                                                            {"int64", i64},
                                                            {"int32", i32},
                                                            {"uint8", u8},
                                                            {"bool", boolean}})
    if (name == known) return dtype;
  throw DataError("no dtype is called " + name);
}

// A truth value, an integer or a real number.
Number number_in(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  return number_of(value);
}

Tensor call(const ReferenceCase& c, const Tensor& left, size_t i, const Subject& subject) {
  const bool numbers = c.args.at("form") == "scalar";
  const auto operand = [&](size_t k) {
    return c.in.at(k).to(dtype_called(c.in_types.at(k))).to(subject.device);
  };
  const auto number = [&] { return number_in(c.args.at("scalars").at(i)); };
  if (c.op == "where") {
    const auto flags = c.args.at("condition").get<std::vector<bool>>();
    const std::vector<int64_t> whole(flags.begin(), flags.end());
    const Tensor condition =
        tensor(whole, whole.size(), {.device = subject.reference}).to(boolean).to(subject.device);
    return numbers ? where(condition, left, number()) : where(condition, left, operand(i + 1));
  }
  for (auto& p : kPromoted)
    if (c.op == p.op) return numbers ? p.number(left, number()) : p.tensors(left, operand(i + 1));
  throw Skipped("because the kit does not know how " + c.op + " promotes");
}

// Twice the distance of 1 from the next number.
double tolerance_of(DType t) {
  return is_floating_point(t) ? std::ldexp(1.0, t == f64   ? -51
                                                : t == f32 ? -22
                                                : t == f16 ? -9
                                                           : -6)
                              : 0;
}

void run(const ReferenceCase& c, const Subject& subject) {
  const DType type = dtype_called(c.in_types.at(0));
  const Tensor left = c.in.at(0).to(type).to(subject.device);
  Findings findings;
  for (size_t i = 0; i < c.out.size(); ++i)
    findings.look([&] {
      const DType expected = dtype_called(c.out_types.at(i));
      const Tensor found = copied_to(call(c, left, i, subject), subject.reference);
      require_same(found, c.out[i].to(expected), tolerance_of(expected),
                   fmt::format("output {}", i));
    });
  findings.require_none();
}

}  // namespace

Check promotion_check(const std::shared_ptr<const ReferenceCase>& c, const Subject& subject) {
  return {"cases", c->op, c->name, dtype_called(c->in_types.at(0)),
          [c, subject] { run(*c, subject); }};
}

}  // namespace tenon::conformance
