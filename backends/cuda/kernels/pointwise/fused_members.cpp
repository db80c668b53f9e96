#include "kernels/pointwise/fused_members.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace tenon::cuda {
namespace {

using sdk::FusedOperand, sdk::FusedRequest, sdk::FusedStep;

// How a member is computed: by a function, by one that is made of numbers of the run, and by the
// value or the slope of a smooth activation.
enum class MemberForm { function, numbered, value, slope };

struct MemberEntry {
  const char* op;
  const char* name;               // in the kernel's source
  const char* of_bool = nullptr;  // where operands are bool
  MemberForm form = MemberForm::function;
};

constexpr MemberEntry numbered(const char* op, const char* name) {
  return {op, name, nullptr, MemberForm::numbered};
}
constexpr MemberEntry value(const char* op, const char* name) {
  return {op, name, nullptr, MemberForm::value};
}
constexpr MemberEntry slope(const char* op, const char* name) {
  return {op, name, nullptr, MemberForm::slope};
}

constexpr const char *kOr = "formulas::Or", *kAnd = "formulas::And", *kXor = "formulas::Xor";

// All members except `copy`, `where`, `pow` and `polygamma`, which depend on more than a name.
constexpr MemberEntry kEntries[] = {
    {"abs", "formulas::Abs"},
    {"acos", "formulas::Acos"},
    {"acosh", "formulas::Acosh"},
    {"add", "formulas::Add", kOr},
    {"addcdiv", "formulas::Addcdiv"},
    {"addcmul", "formulas::Addcmul"},
    {"asin", "formulas::Asin"},
    {"asinh", "formulas::Asinh"},
    {"atan", "formulas::Atan"},
    {"atan2", "formulas::Atan2"},
    {"atanh", "formulas::Atanh"},
    {"bitwise_and", "formulas::BitAnd", kAnd},
    {"bitwise_left_shift", "formulas::LeftShift"},
    {"bitwise_or", "formulas::BitOr", kOr},
    {"bitwise_right_shift", "formulas::RightShift"},
    {"bitwise_xor", "formulas::BitXor", kXor},
    {"ceil", "formulas::Ceil"},
    numbered("clamp", "formulas::Clamp"),
    {"copysign", "formulas::Copysign"},
    {"cos", "Cos"},
    {"cosh", "formulas::Cosh"},
    {"digamma", "formulas::Digamma"},
    {"div", "formulas::Div"},
    value("elu", "formulas::Elu"),
    slope("elu_backward", "formulas::Elu"),
    {"eq", "formulas::Eq"},
    {"erf", "Erf"},
    {"erfc", "formulas::Erfc"},
    {"erfinv", "formulas::Erfinv"},
    {"exp", "Exp"},
    {"exp2", "formulas::Exp2"},
    {"expm1", "formulas::Expm1"},
    {"floor", "formulas::Floor"},
    {"floor_divide", "formulas::FloorDivide"},
    {"fmod", "formulas::Fmod"},
    {"ge", "formulas::Ge"},
    {"gelu", "Gelu"},
    {"gelu_backward", "GeluBackward"},
    value("gelu_tanh", "formulas::GeluTanh"),
    slope("gelu_tanh_backward", "formulas::GeluTanh"),
    {"gt", "formulas::Gt"},
    value("hardsigmoid", "formulas::HardSigmoid"),
    slope("hardsigmoid_backward", "formulas::HardSigmoid"),
    value("hardswish", "formulas::HardSwish"),
    slope("hardswish_backward", "formulas::HardSwish"),
    {"hypot", "formulas::Hypot"},
    {"le", "formulas::Le"},
    value("leaky_relu", "formulas::LeakyRelu"),
    slope("leaky_relu_backward", "formulas::LeakyRelu"),
    {"lerp", "formulas::Lerp"},
    {"lgamma", "formulas::Lgamma"},
    {"log", "Log"},
    {"log10", "formulas::Log10"},
    {"log1p", "formulas::Log1p"},
    {"log2", "formulas::Log2"},
    {"logaddexp", "formulas::Logaddexp"},
    {"logical_and", kAnd},
    {"logical_not", "formulas::Not"},
    {"logical_or", kOr},
    {"logical_xor", kXor},
    numbered("logit", "formulas::Logit"),
    value("logsigmoid", "formulas::LogSigmoid"),
    slope("logsigmoid_backward", "formulas::LogSigmoid"),
    {"lt", "formulas::Lt"},
    {"maximum", "formulas::Maximum", kOr},
    {"minimum", "formulas::Minimum", kAnd},
    value("mish", "formulas::Mish"),
    slope("mish_backward", "formulas::Mish"),
    {"mul", "formulas::Mul", kAnd},
    numbered("nan_to_num", "formulas::NanToNum"),
    {"ne", "formulas::Ne"},
    {"neg", "formulas::Neg"},
    {"reciprocal", "formulas::Reciprocal"},
    {"relu", "formulas::Relu"},
    {"relu_backward", "formulas::ReluBackward"},
    {"remainder", "formulas::Remainder"},
    {"round", "formulas::Round"},
    {"rsqrt", "formulas::Rsqrt"},
    {"sigmoid", "Sigmoid"},
    {"sigmoid_backward", "formulas::SigmoidBackward"},
    {"sign", "formulas::Sign"},
    {"silu", "Silu"},
    {"silu_backward", "SiluBackward"},
    {"sin", "Sin"},
    {"sinh", "formulas::Sinh"},
    value("softplus", "formulas::Softplus"),
    slope("softplus_backward", "formulas::Softplus"),
    {"sqrt", "formulas::Sqrt"},
    {"square", "formulas::Square"},
    {"sub", "formulas::Sub"},
    {"tan", "formulas::Tan"},
    {"tanh", "Tanh"},
    {"tanh_backward", "formulas::TanhBackward"},
    {"trunc", "formulas::Trunc"},
    {"xlogy", "formulas::Xlogy"},
};

std::string name_of(const FusedOperand& operand) {
  return (operand.kind == FusedOperand::input ? "x" : "t") + std::to_string(operand.index);
}
std::string numbers_of(const FusedStep& step) {
  return "a.numbers + " + std::to_string(step.first_scalar);
}
bool has_number_for_last(const FusedStep& step) {
  return step.num_operands > 0 && step.operands[step.num_operands - 1].kind == FusedOperand::absent;
}

// What is computed in: half types as f32, bools as bytes.
std::string computed(tn_dtype dtype) { return std::string("Computed<") + type_of(dtype) + ">"; }

// The function as an object.
std::string function_of(const MemberEntry& entry, const FusedStep& step, tn_dtype dtype) {
  std::string name = dtype == TN_BOOL && entry.of_bool ? entry.of_bool : entry.name;
  if (entry.form == MemberForm::function) return name + "()";
  name += "<" + computed(dtype) + ">";
  const std::string made =
      name + "::from(" + (step.num_scalars ? numbers_of(step) : "nullptr") + ")";
  if (entry.form == MemberForm::numbered) return made;
  return (entry.form == MemberForm::value ? "ValueOf<" : "SlopeOf<") + name + ">{" + made + "}";
}

std::string power_of(const FusedStep& step, tn_dtype dtype) {
  if ((sdk::detail::kFusedIntegers >> dtype & 1) != 0) return "formulas::WholePower()";
  if (has_number_for_last(step) && !step.attr) return "Pow{kind_of((" + numbers_of(step) + ")->f)}";
  return "Pow()";
}

// The operands as a call gives them, a number in the place of an absent one.
std::string operands_of(const FusedStep& step, tn_dtype dtype) {
  std::string text[3];
  for (uint32_t k = 0; k < step.num_operands; ++k)
    text[k] = step.operands[k].kind != FusedOperand::absent ? name_of(step.operands[k])
              : dtype == TN_BOOL
                  ? "truth(*(" + numbers_of(step) + "))"
                  : std::string("number<") + type_of(dtype) + ">(*(" + numbers_of(step) + "))";
  if (has_number_for_last(step) && step.attr) std::swap(text[0], text[1]);
  std::string all;
  for (uint32_t k = 0; k < step.num_operands; ++k) all += ", " + text[k];
  return all;
}

}  // namespace

const char* type_of(tn_dtype dtype) {
  switch (dtype) {
    case TN_F32:
      return "float";
    case TN_F64:
      return "double";
    case TN_F16:
      return "Half";
    case TN_BF16:
      return "BFloat";
    case TN_I64:
      return "int64_t";
    case TN_I32:
      return "int32_t";
    default:
      return "uint8_t";  // bools are bytes, of which each member makes 0 or 1
  }
}

std::string member_expression(const FusedRequest& program, const FusedStep& step) {
  const std::string_view op = step.member->op;
  const std::string out = type_of(step.dtype);
  if (op == "where")
    return name_of(step.operands[0]) + " ? " + name_of(step.operands[1]) + " : " +
           name_of(step.operands[2]);
  const std::string x = name_of(step.operands[0]);
  const tn_dtype dtype = program.dtype_of(step.operands[0]);
  if (op == "copy")
    return step.dtype == TN_BOOL ? "cast<Bool>(" + x + ").bits" : "cast<" + out + ">(" + x + ")";
  std::string function;
  if (op == "pow") {
    function = power_of(step, dtype);
  } else if (op == "polygamma") {
    function = "formulas::Polygamma{" + std::to_string(step.attr) + "}";
  } else {
    const auto entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                    [&](const MemberEntry& e) { return op == e.op; });
    if (entry == std::end(kEntries))
      sdk::unsupported("{}: no kernel of this plugin computes it", op);
    function = function_of(*entry, step, dtype);
  }
  return "apply<" + out + ">(" + function + operands_of(step, dtype) + ")";
}

std::string program_comment(const FusedRequest& program) {
  std::string all;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const FusedStep& step = program.steps[s];
    all += sdk::text("// t{} = {}", s, step.member->op);
    if (step.has_attr) all += sdk::text("[{}={}]", step.member->attr, step.attr);
    const char* before = "(";
    for (uint32_t k = 0; k < step.num_operands; ++k, before = ", ")
      all += before + (step.operands[k].kind == FusedOperand::absent ? std::string("_")
                                                                     : name_of(step.operands[k]));
    if (step.num_scalars) all += sdk::text(", #{}", step.num_scalars);
    all += sdk::text("): {}\n", sdk::dtype_name(step.dtype));
  }
  return all;
}

}  // namespace tenon::cuda
