// Divisions with a remainder, and operators on bits.
#include <tenon/plugins/sdk/binary_formulas.h>

#include "kernels/pointwise/functions.h"

namespace tenon::cpu {
namespace {

template <class Op>
constexpr NamedRows bits(const char* op, RowKernel boolean) {
  return {op,
          0.3,
          0.6,
          {.i64 = binary_row<Op, int64_t>,
           .i32 = binary_row<Op, int32_t>,
           .u8 = binary_row<Op, uint8_t>,
           .boolean = boolean}};
}
constexpr NamedRows kDivisions[] = {
    number_of_two<formulas::Fmod>("fmod", 8, 10),
    number_of_two<formulas::Remainder>("remainder", 8, 10),
    number_of_two<formulas::FloorDivide>("floor_divide", 9, 12),
    bits<formulas::BitAnd>("bitwise_and", binary_row<formulas::And, uint8_t>),
    bits<formulas::BitOr>("bitwise_or", binary_row<formulas::Or, uint8_t>),
    bits<formulas::BitXor>("bitwise_xor", binary_row<formulas::Xor, uint8_t>),
    bits<formulas::LeftShift>("bitwise_left_shift", nullptr),
    bits<formulas::RightShift>("bitwise_right_shift", nullptr),
};
const sdk::Kernel divisions(kDivisions, make_binary<kDivisions>);

}  // namespace
}  // namespace tenon::cpu
