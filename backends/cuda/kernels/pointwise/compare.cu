// Comparisons and logic.
#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

// For operands of any dtype; bools are compared as bytes.
template <class Op>
constexpr ByDtype<BinaryStart> kCompare = [] {
  auto starts = number_starts([]<class T>(Type<T>) { return start_binary<Op, uint8_t, T>; });
  starts.boolean = starts.u8;
  return starts;
}();

template <class Op>
tn_plan* compare(tn_device*, const Request& request) {
  return make_binary_plan(request, kCompare<Op>.pick(request.input(0).dtype));
}
const sdk::Kernel eq({"eq"}, compare<formulas::Eq>);
const sdk::Kernel ne({"ne"}, compare<formulas::Ne>);
const sdk::Kernel lt({"lt"}, compare<formulas::Lt>);
const sdk::Kernel le({"le"}, compare<formulas::Le>);
const sdk::Kernel gt({"gt"}, compare<formulas::Gt>);
const sdk::Kernel ge({"ge"}, compare<formulas::Ge>);

template <class Op>
tn_plan* logical(tn_device*, const Request& request) {
  constexpr ByDtype<BinaryStart> starts = {.boolean = start_binary<Op, uint8_t, uint8_t>};
  return make_binary_plan(request, starts.pick(request.input(0).dtype));
}
const sdk::Kernel both({"logical_and"}, logical<formulas::And>);
const sdk::Kernel either({"logical_or"}, logical<formulas::Or>);
const sdk::Kernel one({"logical_xor"}, logical<formulas::Xor>);

constexpr ByDtype<UnaryStart> kNot = [] {
  auto starts =
      number_starts([]<class T>(Type<T>) { return start_unary<formulas::Not, uint8_t, T>; });
  starts.boolean = starts.u8;
  return starts;
}();
const sdk::Kernel negation({"logical_not"}, [](tn_device*, const Request& request) {
  return make_unary_plan(request, kNot.pick(request.input(0).dtype));
});

}  // namespace
}  // namespace tenon::cuda
