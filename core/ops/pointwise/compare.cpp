// Comparisons and logic (core/ops/pointwise.h).
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/binary.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

void infer_comparison(Infer& infer) { infer.output(DType::boolean, broadcast_inputs(infer)); }

void infer_logical_not(Infer& infer) { infer.output(DType::boolean, shape_of(infer.in(0))); }

void infer_logic(Infer& infer) {
  for (size_t i = 0; i < 2; ++i)
    infer.require_dtype(dtype_of(infer.in(i)) == DType::boolean, i, "bool", DType::boolean);
  infer.output(DType::boolean, broadcast_inputs(infer));
}

OpSpec comparison(const char* name) {
  return {
      .name = name,
      .inputs = "a b",
      .infer = infer_comparison,
      .pointwise = true,
      .promotion = Promotion::common,
      .number_for = 1,
  };
}
// | `eq ne lt le gt ge` | a, b? -> y(bool) | `reverse`; b | any |
const Op eq_op{comparison("eq")};
const Op ne_op{comparison("ne")};
const Op lt_op{comparison("lt")};
const Op le_op{comparison("le")};
const Op gt_op{comparison("gt")};
const Op ge_op{comparison("ge")};
// | `logical_and logical_or logical_xor` | a(bool), b(bool) -> y(bool) | | |
const Op logical_and_op{
    {.name = "logical_and", .inputs = "a b", .infer = infer_logic, .pointwise = true}};
const Op logical_or_op{
    {.name = "logical_or", .inputs = "a b", .infer = infer_logic, .pointwise = true}};
const Op logical_xor_op{
    {.name = "logical_xor", .inputs = "a b", .infer = infer_logic, .pointwise = true}};
// | `logical_not` | x -> y(bool) | | any |
const Op logical_not_op{{.name = "logical_not", .infer = infer_logical_not, .pointwise = true}};

Tensor truth(const char* op, const Tensor& x, const char* name = "x") {
  require_tensor(op, x, name);
  return dtype_of(x) == DType::boolean ? x : ne(x, 0);
}

Tensor logic(const Op& op, const Tensor& a, const Tensor& b) {
  Tensor ta = truth(op.name, a, "a"), tb = truth(op.name, b, "b");
  return run(op, {&ta, &tb});
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return run_binary(eq_op, a, b); }
Tensor eq(const Tensor& a, Number b) { return run_ordering(eq_op, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return run_binary(ne_op, a, b); }
Tensor ne(const Tensor& a, Number b) { return run_ordering(ne_op, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return run_binary(lt_op, a, b); }
Tensor lt(const Tensor& a, Number b) { return run_ordering(lt_op, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return run_binary(le_op, a, b); }
Tensor le(const Tensor& a, Number b) { return run_ordering(le_op, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return run_binary(gt_op, a, b); }
Tensor gt(const Tensor& a, Number b) { return run_ordering(gt_op, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return run_binary(ge_op, a, b); }
Tensor ge(const Tensor& a, Number b) { return run_ordering(ge_op, a, b); }

Tensor logical_and(const Tensor& a, const Tensor& b) { return logic(logical_and_op, a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return logic(logical_or_op, a, b); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return logic(logical_xor_op, a, b); }
Tensor logical_not(const Tensor& x) {
  require_tensor("logical_not", x);
  return run(logical_not_op, {&x});
}

}  // namespace tenon
