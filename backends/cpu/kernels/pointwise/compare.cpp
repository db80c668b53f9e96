// Comparisons and logic.
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
const sdk::Kernel comparisons(kComparisons, make_binary<kComparisons>);

constexpr NamedRows kNot[] = {[] {
  auto rows = number_rows([]<class T>(Type<T>) { return unary_row<formulas::Not, T, uint8_t>; });
  rows.boolean = rows.u8;
  return NamedRows{"logical_not", 0.2, 0.2, rows};
}()};
const sdk::Kernel negation(kNot, make_unary<kNot>);

}  // namespace
}  // namespace tenon::cpu
