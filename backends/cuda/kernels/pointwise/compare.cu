// Comparisons and logic.
#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

#define TN_COMPARE(Name, formula)                   \
  struct Name {                                     \
    template <class T>                              \
    __device__ uint8_t operator()(T a, T b) const { \
      return formula;                               \
    }                                               \
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
  ByDtype<BinaryStart> start;
};
template <class Op>
constexpr Entry compare(const char* op) {
  return {op,
          {.f32 = start_binary<Op, uint8_t, float>,
           .f64 = start_binary<Op, uint8_t, double>,
           .f16 = start_binary<Op, uint8_t, Half>,
           .bf16 = start_binary<Op, uint8_t, BFloat>,
           .i64 = start_binary<Op, uint8_t, int64_t>,
           .i32 = start_binary<Op, uint8_t, int32_t>,
           .u8 = start_binary<Op, uint8_t, uint8_t>,
           .boolean = start_binary<Op, uint8_t, uint8_t>}};
}
constexpr Entry kEntries[] = {compare<Eq>("eq"), compare<Ne>("ne"), compare<Lt>("lt"),
                              compare<Le>("le"), compare<Gt>("gt"), compare<Ge>("ge")};

tn_plan* make_compare(tn_device*, const Request& request) {
  auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                             [&](auto& e) { return request.op() == e.op; });
  return make_binary_plan(request, entry->start.pick(request, request.input(0).dtype));
}
const sdk::Kernel comparisons({"eq", "ne", "lt", "le", "gt", "ge"}, make_compare);

tn_plan* make_logical(tn_device*, const Request& request) {
  for (size_t i = 0; i < 2; ++i)
    if (request.input(i).dtype != TN_BOOL) refuse_dtype(request, request.input(i).dtype);
  return make_binary_plan(request,
                          request.op() == "logical_and"  ? start_binary<And, uint8_t, uint8_t>
                          : request.op() == "logical_or" ? start_binary<Or, uint8_t, uint8_t>
                                                         : start_binary<Xor, uint8_t, uint8_t>);
}
const sdk::Kernel logic({"logical_and", "logical_or", "logical_xor"}, make_logical);

struct Not {
  template <class T>
  __device__ uint8_t operator()(T x) const {
    return x == T(0);
  }
};
constexpr ByDtype<UnaryStart> kNot = {.f32 = start_unary<Not, uint8_t, float>,
                                      .f64 = start_unary<Not, uint8_t, double>,
                                      .f16 = start_unary<Not, uint8_t, Half>,
                                      .bf16 = start_unary<Not, uint8_t, BFloat>,
                                      .i64 = start_unary<Not, uint8_t, int64_t>,
                                      .i32 = start_unary<Not, uint8_t, int32_t>,
                                      .u8 = start_unary<Not, uint8_t, uint8_t>,
                                      .boolean = start_unary<Not, uint8_t, uint8_t>};
const sdk::Kernel negation({"logical_not"}, [](tn_device*, const Request& request) {
  return make_unary_plan(request, kNot.pick(request, request.input(0).dtype));
});

}  // namespace
}  // namespace tenon::cuda
