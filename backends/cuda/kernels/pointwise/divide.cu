// Divisions with a remainder, and operators on bits.
#include <tenon/plugins/sdk/binary_formulas.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cuda {
namespace {

template <class Op>
constexpr NamedBinary division(const char* op) {
  auto starts = wide_starts([]<class T>(Type<T>) { return start_binary<Op, T, T>; });
  starts.i64 = start_binary<Op, int64_t, int64_t>;
  starts.i32 = start_binary<Op, int32_t, int32_t>;
  starts.u8 = start_binary<Op, uint8_t, uint8_t>;
  return {op, starts};
}
template <class Op>
constexpr NamedBinary bits(const char* op, BinaryStart boolean) {
  return {op,
          {.i64 = start_binary<Op, int64_t, int64_t>,
           .i32 = start_binary<Op, int32_t, int32_t>,
           .u8 = start_binary<Op, uint8_t, uint8_t>,
           .boolean = boolean}};
}
constexpr NamedBinary kDivisions[] = {
    division<formulas::Fmod>("fmod"),
    division<formulas::Remainder>("remainder"),
    division<formulas::FloorDivide>("floor_divide"),
    bits<formulas::BitAnd>("bitwise_and", start_binary<formulas::And, uint8_t, uint8_t>),
    bits<formulas::BitOr>("bitwise_or", start_binary<formulas::Or, uint8_t, uint8_t>),
    bits<formulas::BitXor>("bitwise_xor", start_binary<formulas::Xor, uint8_t, uint8_t>),
    bits<formulas::LeftShift>("bitwise_left_shift", nullptr),
    bits<formulas::RightShift>("bitwise_right_shift", nullptr),
};
const sdk::Kernel divisions(kDivisions, make_binary<kDivisions>);

}  // namespace
}  // namespace tenon::cuda
