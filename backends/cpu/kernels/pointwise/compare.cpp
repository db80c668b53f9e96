// Comparisons, logic and selection.
#include <cstring>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {
namespace {

// Bools are compared as bytes.
template <class Op>
constexpr NamedRows compare(const char* op) {
  auto rows = number_rows([]<class T>(Type<T>) { return binary_row<Op, T, uint8_t>; });
  rows.boolean = rows.u8;
  return {op, 0.2, 0.4, rows};
}
template <class Op>
constexpr NamedRows logical(const char* op) {
  return {op, 0.1, 0.1, {.boolean = binary_row<Op, uint8_t>}};
}
constexpr NamedRows kComparisons[] = {
    compare<formulas::Eq>("eq"),           compare<formulas::Ne>("ne"),
    compare<formulas::Lt>("lt"),           compare<formulas::Le>("le"),
    compare<formulas::Gt>("gt"),           compare<formulas::Ge>("ge"),
    logical<formulas::And>("logical_and"), logical<formulas::Or>("logical_or"),
    logical<formulas::Xor>("logical_xor")};
const sdk::Kernel comparisons({"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or",
                               "logical_xor"},
                              [](tn_device*, const Request& request) {
                                return make_binary_plan(request, kComparisons);
                              });

constexpr NamedRows kNot[] = {[] {
  auto rows = number_rows([]<class T>(Type<T>) { return unary_row<formulas::Not, T, uint8_t>; });
  rows.boolean = rows.u8;
  return NamedRows{"logical_not", 0.2, 0.2, rows};
}()};
const sdk::Kernel negation({"logical_not"}, [](tn_device*, const Request& request) {
  return make_unary_plan(request, kNot);
});

// Selection knows the size of an element, not its dtype.
template <class T>
void where_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* c = static_cast<const uint8_t*>(row.in[0]);
  auto* a = static_cast<const T*>(row.in[1]);
  auto* b = static_cast<const T*>(row.in[2]);
  auto select = [&](auto from_a, auto from_b) {
    TN_INDEPENDENT
    for (int64_t i = 0; i < row.n; ++i) {
      T u = from_a(i), v = from_b(i);
      y[i] = c[i] ? u : v;
    }
  };
  auto all_a = [a](int64_t i) { return a[i]; };
  auto all_b = [b](int64_t i) { return b[i]; };
  auto one_a = [v = *a](int64_t) { return v; };
  auto one_b = [v = *b](int64_t) { return v; };
  switch (row.single >> 1) {
    case 0:
      return select(all_a, all_b);
    case 1:
      return select(one_a, all_b);
    case 2:
      return select(all_a, one_b);
    default:
      return select(one_a, one_b);
  }
}

tn_plan* make_where(tn_device*, const Request& request) {
  auto &c = request.input(0), &a = request.input(1), &b = request.input(2);
  if (c.dtype != TN_BOOL) refuse_dtype(c.dtype);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&c, &a, &b}, 6, 0.4, /*as_bits=*/true);
  return with_width(a.dtype, [&loop]<class T>(T) {
    return sdk::make_plan(
        [loop](const tn_run& run) { loop.run(where_row<T>, run.outputs[0], run.inputs); },
        {0, loop.cost_ns()});
  });
}
const sdk::Kernel selection({"where"}, make_where);

}  // namespace
}  // namespace tenon::cpu
