// Comparisons, logic and selection.
#include <cstring>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cpu {
namespace {

#define TN_COMPARE(Name, formula) \
  struct Name {                   \
    template <class T>            \
    static uint8_t of(T a, T b) { \
      return formula;             \
    }                             \
  }
TN_COMPARE(Eq, a == b);
TN_COMPARE(Ne, a != b);
TN_COMPARE(Lt, a < b);
TN_COMPARE(Le, a <= b);
TN_COMPARE(Gt, a > b);
TN_COMPARE(Ge, a >= b);
TN_COMPARE(And, a& b);
TN_COMPARE(Or, a | b);
TN_COMPARE(Xor, a ^ b);
#undef TN_COMPARE

struct Entry {
  const char* op;
  RowKernel f32, f64, i64, i32, u8;
};
template <class Op>
constexpr Entry compare(const char* op) {
  return {op,
          binary_row<Op, float, uint8_t>,
          binary_row<Op, double, uint8_t>,
          binary_row<Op, int64_t, uint8_t>,
          binary_row<Op, int32_t, uint8_t>,
          binary_row<Op, uint8_t, uint8_t>};
}
constexpr Entry kEntries[] = {compare<Eq>("eq"), compare<Ne>("ne"), compare<Lt>("lt"),
                              compare<Le>("le"), compare<Gt>("gt"), compare<Ge>("ge")};

tn_plan* make_compare(tn_device*, const Request& request) {
  auto dtype = request.input(0).dtype;
  auto& e = *std::find_if(std::begin(kEntries), std::end(kEntries),
                          [&](auto& e) { return request.op() == e.op; });
  const RowKernel by_dtype[] = {e.f32, e.f64, e.f32, e.f32, e.i64, e.i32, e.u8, e.u8};
  return make_binary_plan(request, by_dtype[dtype], sdk::dtype_size(dtype) == 8 ? 0.4 : 0.2);
}
const sdk::Kernel comparisons({"eq", "ne", "lt", "le", "gt", "ge"}, make_compare);

tn_plan* make_logical(tn_device*, const Request& request) {
  for (size_t i = 0; i < 2; ++i)
    if (request.input(i).dtype != TN_BOOL) refuse_dtype(request, request.input(i).dtype);
  RowKernel kernel = request.op() == "logical_and"  ? binary_row<And, uint8_t>
                     : request.op() == "logical_or" ? binary_row<Or, uint8_t>
                                                    : binary_row<Xor, uint8_t>;
  return make_binary_plan(request, kernel, 0.1);
}
const sdk::Kernel logic({"logical_and", "logical_or", "logical_xor"}, make_logical);

template <class T>
void not_row(const Row& row) {
  auto* y = static_cast<uint8_t*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  for (int64_t i = 0; i < row.n; ++i) y[i] = x[i] == T(0);
}

tn_plan* make_not(tn_device*, const Request& request) {
  constexpr RowKernel by_dtype[] = {not_row<float>,   not_row<double>,  not_row<float>,
                                    not_row<float>,   not_row<int64_t>, not_row<int32_t>,
                                    not_row<uint8_t>, not_row<uint8_t>};
  auto& x = request.input(0);
  if (sdk::numel(x) == 0) return empty_plan();
  Pointwise loop(request, {&x}, 0, 0.2);
  return sdk::make_plan([loop, kernel = by_dtype[x.dtype]](
                            const tn_run& run) { loop.run(kernel, run.outputs[0], run.inputs); },
                        {0, loop.cost_ns()});
}
const sdk::Kernel negation({"logical_not"}, make_not);

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
  if (c.dtype != TN_BOOL) refuse_dtype(request, c.dtype);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  size_t size = sdk::dtype_size(a.dtype);
  RowKernel kernel = size == 1   ? where_row<uint8_t>
                     : size == 2 ? where_row<uint16_t>
                     : size == 4 ? where_row<uint32_t>
                                 : where_row<uint64_t>;
  Pointwise loop(request, {&c, &a, &b}, 6, 0.4, /*as_bits=*/true);
  return sdk::make_plan(
      [loop, kernel](const tn_run& run) { loop.run(kernel, run.outputs[0], run.inputs); },
      {0, loop.cost_ns()});
}
const sdk::Kernel selection({"where"}, make_where);

}  // namespace
}  // namespace tenon::cpu
