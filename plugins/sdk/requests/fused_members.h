// The operators that a fused program may consist of (plugins/sdk/requests/fused.h): what each takes
// and makes, as docs/operators.md has it.
#pragma once

#include <cstdint>
#include <string_view>

#include <tenon/plugins/abi/abi.h>

namespace tenon::sdk {

// Says which dtype the result of a member has.
enum class FusedResult : uint8_t {
  same,     // that of its operands
  boolean,  // bool
  stated,   // whatever the program says: a conversion
  total,    // i64 for integers and bool, else that of its operand
};

// An operator that may be a step of a fused program: what it takes and makes.
struct FusedMember {
  // The name of the operator.
  const char* op;
  // The number of operands. The last one may be absent if `number_for_last`; one scalar then stands
  // for it. `scalars` are those beside that one.
  uint8_t operands;
  bool number_for_last;
  uint8_t scalars;
  // The dtype of the result.
  FusedResult result;
  // Bit t says that it takes operands of dtype t; they all have one dtype, but the condition of
  // `where`.
  uint32_t takes;
  // The name of the one attribute that it may have, and its kind.
  const char* attr = nullptr;
  tn_attr_kind attr_kind = TN_ATTR_INT;
  // True if it makes one value of each row.
  bool reduces = false;

  // Returns whether it cannot be without its attribute: a bool is false where it is missing.
  bool needs_attr() const { return attr && attr_kind != TN_ATTR_BOOL; }
  // Returns whether operand 0 is a condition, of bool.
  bool selects() const { return std::string_view(op) == "where"; }
};

namespace detail {

constexpr uint32_t kFusedFloats = 1u << TN_F32 | 1u << TN_F64 | 1u << TN_F16 | 1u << TN_BF16,
                   kFusedIntegers = 1u << TN_I64 | 1u << TN_I32 | 1u << TN_U8,
                   kFusedBool = 1u << TN_BOOL, kFusedNumbers = kFusedFloats | kFusedIntegers,
                   kFusedAny = kFusedNumbers | kFusedBool;

// Returns a member that takes one tensor.
constexpr FusedMember fused_unary(const char* op, uint32_t takes = kFusedFloats,
                                  uint8_t scalars = 0) {
  return {op, 1, false, scalars, FusedResult::same, takes};
}
// Returns a member that takes two tensors, or a tensor and a number.
constexpr FusedMember fused_binary(const char* op, uint32_t takes,
                                   FusedResult result = FusedResult::same) {
  return {op, 2, true, 0, result, takes, "reverse", TN_ATTR_BOOL};
}
// Returns a member that takes tensors alone.
constexpr FusedMember fused_tensors(const char* op, uint8_t operands, uint32_t takes,
                                    uint8_t scalars = 0) {
  return {op, operands, false, scalars, FusedResult::same, takes};
}

// Returns a member that reduces the values of a row.
constexpr FusedMember fused_reduction(const char* op, uint32_t takes,
                                      FusedResult result = FusedResult::same,
                                      const char* attr = nullptr) {
  return {op, 1, false, 0, result, takes, attr, TN_ATTR_INT, true};
}

}  // namespace detail

// All members, in the order of their names.
inline constexpr FusedMember kFusedMembers[] = {
    detail::fused_unary("abs", detail::kFusedNumbers),
    detail::fused_unary("acos"),
    detail::fused_unary("acosh"),
    detail::fused_binary("add", detail::kFusedAny),
    detail::fused_tensors("addcdiv", 3, detail::kFusedFloats),
    detail::fused_tensors("addcmul", 3, detail::kFusedNumbers),
    detail::fused_reduction("all", detail::kFusedBool),
    detail::fused_reduction("amax", detail::kFusedNumbers),
    detail::fused_reduction("amin", detail::kFusedNumbers),
    detail::fused_reduction("any", detail::kFusedBool),
    detail::fused_unary("asin"),
    detail::fused_unary("asinh"),
    detail::fused_unary("atan"),
    detail::fused_binary("atan2", detail::kFusedFloats),
    detail::fused_unary("atanh"),
    detail::fused_tensors("binary_cross_entropy", 2, detail::kFusedFloats),
    detail::fused_binary("bitwise_and", detail::kFusedIntegers | detail::kFusedBool),
    detail::fused_binary("bitwise_left_shift", detail::kFusedIntegers),
    detail::fused_binary("bitwise_or", detail::kFusedIntegers | detail::kFusedBool),
    detail::fused_binary("bitwise_right_shift", detail::kFusedIntegers),
    detail::fused_binary("bitwise_xor", detail::kFusedIntegers | detail::kFusedBool),
    detail::fused_unary("ceil"),
    detail::fused_unary("clamp", detail::kFusedNumbers, 2),
    {"copy", 1, false, 0, FusedResult::stated, detail::kFusedAny},
    detail::fused_binary("copysign", detail::kFusedFloats),
    detail::fused_unary("cos"),
    detail::fused_unary("cosh"),
    detail::fused_unary("digamma"),
    detail::fused_binary("div", detail::kFusedFloats),
    detail::fused_unary("elu", detail::kFusedFloats, 3),
    detail::fused_tensors("elu_backward", 2, detail::kFusedFloats, 3),
    detail::fused_binary("eq", detail::kFusedAny, FusedResult::boolean),
    detail::fused_unary("erf"),
    detail::fused_unary("erfc"),
    detail::fused_unary("erfinv"),
    detail::fused_unary("exp"),
    detail::fused_unary("exp2"),
    detail::fused_unary("expm1"),
    detail::fused_unary("floor"),
    detail::fused_binary("floor_divide", detail::kFusedNumbers),
    detail::fused_binary("fmod", detail::kFusedNumbers),
    detail::fused_binary("ge", detail::kFusedAny, FusedResult::boolean),
    detail::fused_unary("gelu"),
    detail::fused_tensors("gelu_backward", 2, detail::kFusedFloats),
    detail::fused_unary("gelu_tanh"),
    detail::fused_tensors("gelu_tanh_backward", 2, detail::kFusedFloats),
    detail::fused_binary("gt", detail::kFusedAny, FusedResult::boolean),
    detail::fused_unary("hardsigmoid"),
    detail::fused_tensors("hardsigmoid_backward", 2, detail::kFusedFloats),
    detail::fused_unary("hardswish"),
    detail::fused_tensors("hardswish_backward", 2, detail::kFusedFloats),
    detail::fused_binary("hypot", detail::kFusedFloats),
    detail::fused_binary("le", detail::kFusedAny, FusedResult::boolean),
    detail::fused_unary("leaky_relu", detail::kFusedFloats, 1),
    detail::fused_tensors("leaky_relu_backward", 2, detail::kFusedFloats, 1),
    {"lerp", 3, true, 0, FusedResult::same, detail::kFusedFloats},
    detail::fused_unary("lgamma"),
    detail::fused_unary("log"),
    detail::fused_unary("log10"),
    detail::fused_unary("log1p"),
    detail::fused_unary("log2"),
    detail::fused_binary("logaddexp", detail::kFusedFloats),
    detail::fused_tensors("logical_and", 2, detail::kFusedBool),
    {"logical_not", 1, false, 0, FusedResult::boolean, detail::kFusedAny},
    detail::fused_tensors("logical_or", 2, detail::kFusedBool),
    detail::fused_tensors("logical_xor", 2, detail::kFusedBool),
    detail::fused_unary("logit", detail::kFusedFloats, 2),
    detail::fused_unary("logsigmoid"),
    detail::fused_tensors("logsigmoid_backward", 2, detail::kFusedFloats),
    detail::fused_binary("lt", detail::kFusedAny, FusedResult::boolean),
    detail::fused_reduction("logsumexp", detail::kFusedFloats),
    detail::fused_binary("maximum", detail::kFusedAny),
    detail::fused_reduction("mean", detail::kFusedFloats),
    detail::fused_binary("minimum", detail::kFusedAny),
    detail::fused_unary("mish"),
    detail::fused_tensors("mish_backward", 2, detail::kFusedFloats),
    detail::fused_binary("mul", detail::kFusedAny),
    detail::fused_unary("nan_to_num", detail::kFusedFloats, 3),
    detail::fused_binary("ne", detail::kFusedAny, FusedResult::boolean),
    detail::fused_unary("neg", detail::kFusedNumbers),
    {"polygamma", 1, false, 0, FusedResult::same, detail::kFusedFloats, "n", TN_ATTR_INT},
    detail::fused_binary("pow", detail::kFusedNumbers),
    detail::fused_reduction("prod", detail::kFusedAny, FusedResult::total),
    detail::fused_unary("reciprocal"),
    detail::fused_unary("relu", detail::kFusedNumbers),
    detail::fused_tensors("relu_backward", 2, detail::kFusedFloats),
    detail::fused_binary("remainder", detail::kFusedNumbers),
    detail::fused_unary("round"),
    detail::fused_unary("rsqrt"),
    detail::fused_unary("sigmoid"),
    detail::fused_tensors("sigmoid_backward", 2, detail::kFusedFloats),
    detail::fused_unary("sign", detail::kFusedNumbers),
    detail::fused_unary("silu"),
    detail::fused_tensors("silu_backward", 2, detail::kFusedFloats),
    detail::fused_unary("sin"),
    detail::fused_unary("sinh"),
    detail::fused_unary("softplus", detail::kFusedFloats, 2),
    detail::fused_tensors("softplus_backward", 2, detail::kFusedFloats, 2),
    detail::fused_unary("sqrt"),
    detail::fused_unary("square", detail::kFusedNumbers),
    detail::fused_binary("sub", detail::kFusedNumbers),
    detail::fused_reduction("sum", detail::kFusedAny, FusedResult::total),
    detail::fused_unary("tan"),
    detail::fused_unary("tanh"),
    detail::fused_tensors("tanh_backward", 2, detail::kFusedFloats),
    detail::fused_unary("trunc"),
    detail::fused_reduction("var", detail::kFusedFloats, FusedResult::same, "correction"),
    detail::fused_tensors("where", 3, detail::kFusedAny),
    detail::fused_binary("xlogy", detail::kFusedFloats),
};

// Returns the member of this name, or NULL.
inline const FusedMember* fused_member(std::string_view op) {
  for (auto& member : kFusedMembers)
    if (op == member.op) return &member;
  return nullptr;
}

}  // namespace tenon::sdk
