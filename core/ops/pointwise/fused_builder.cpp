// How programs of pointwise operators are put together and kept.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/dispatch/with_texts.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/ops/pointwise/fused.h>
#include <tenon/core/ops/pointwise/fused_rules.h>

namespace tenon {

namespace {

// Plans refer to the text of their program, so texts are never freed. Their number is that of the
// programs that backends compile, because a text contains neither shapes nor scalars. Attributes of
// steps point to `texts`, because the file from which they were read may be closed earlier.
struct FusedPrograms {
  ForkMutex mutex{ForkOrder::tables};
  std::set<std::string, std::less<>> texts;
  std::map<std::string, std::unique_ptr<const FusedProgram>, std::less<>> all;
};
constinit NeverDestroyed<FusedPrograms> fused_programs;

std::string spelled(const FusedValue& value) {
  if (value.kind == FusedValue::absent) return "_";
  return fmt::format("{}{}", value.kind == FusedValue::input ? 'x' : 't', value.index);
}

// The attributes that a plugin gets.
std::string text_of_attrs(const FusedProgram::Step& step) {
  std::string text;
  for (auto& a : step.attrs.all()) {
    if (step.op->core_attr && std::string_view(a.name) == step.op->core_attr) continue;
    if ((a.kind != TN_ATTR_INT && a.kind != TN_ATTR_BOOL) || !text.empty())
      throw Error(fmt::format("fused: {} has the attribute \"{}\", which a program cannot say",
                              step.op->name, a.name));
    text = a.kind == TN_ATTR_BOOL ? fmt::format("[{}={}]", a.name, a.i != 0)
                                  : fmt::format("[{}={}]", a.name, a.i);
  }
  return text;
}

std::string spelled(const FusedProgram::Step& step) {
  std::string text = step.op->name + text_of_attrs(step) + '(';
  const char* between = "";
  for (auto& operand : step.operands) {
    text += between + spelled(operand);
    between = ", ";
  }
  if (step.num_scalars) text += fmt::format("{}#{}", between, step.num_scalars);
  return text + fmt::format("): {}", step.dtype);
}

}  // namespace

bool can_be_fused(const Op& op) {
  return op.pointwise && !op.execute && &op != &fused_op && is_of_library(op);
}

bool can_be_fused_reduction(const Op& op) {
  static constexpr std::string_view names[] = {"all",  "amax", "amin", "any", "logsumexp",
                                               "mean", "prod", "sum",  "var"};
  if (std::find(std::begin(names), std::end(names), op.name) == std::end(names)) return false;
  return is_of_library(op);
}

bool can_be_fused_reduction(const Op& op, const Shape& dims, const TensorDesc& x) {
  return can_be_fused_reduction(op) && !x.shape.empty() &&
         dims == Shape{static_cast<int64_t>(x.shape.size()) - 1} &&
         has_format(x.shape, x.strides, contiguous_format);
}

const FusedProgram& fused_program(std::string_view text) {
  auto& kept = fused_programs.get();
  std::lock_guard lock(kept.mutex);
  const auto it = kept.all.find(text);
  if (it == kept.all.end())
    throw Error(fmt::format("fused: nobody built the program \"{}\"", text));
  return *it->second;
}

namespace {
// The attributes of a reduction in a program. The dimension is not among them: it is the last one.
Attrs attrs_of_reduction(const Op& op, const Attrs& attrs) {
  if (attrs.has("dims") && attrs.get_list("dims").size() != 1)
    throw Error(fmt::format("fused: {} reduces the last dimension alone; found dims {}", op.name,
                            attrs.get_list("dims")));
  Attrs kept;
  if (std::string_view(op.name) == "var")
    kept.set("correction", attrs.has("correction") ? attrs.get_int("correction") : int64_t{1});
  return kept;
}
}  // namespace

FusedValue FusedBuilder::input(DType dtype) {
  if (input_dtypes_.size() == FusedProgram::kMaxInputs)
    throw Error(fmt::format("fused: more than {} inputs", FusedProgram::kMaxInputs));
  input_dtypes_.push_back(dtype);
  return {FusedValue::input, static_cast<uint32_t>(program_.num_inputs_++)};
}

FusedValue FusedBuilder::step(const Op& op, std::span<const FusedValue> operands,
                              const Attrs& attrs, size_t num_scalars) {
  FusedProgram::Step step{
      &op,        DType::f32, {operands.begin(), operands.end()}, attrs, program_.num_scalars_,
      num_scalars};
  if (can_be_fused(op)) return add(std::move(step));
  if (!can_be_fused_reduction(op))
    throw Error(fmt::format("fused: {} cannot be a member", op.name));
  step.reduces = true;
  step.attrs = attrs_of_reduction(op, attrs);
  if (operands.size() != 1 || operands[0].kind == FusedValue::absent || num_scalars > 0)
    throw Error(fmt::format("fused: {} takes one operand and no numbers", op.name));
  if (operands[0].kind == FusedValue::step && operands[0].index < row_values_.size() &&
      row_values_[operands[0].index])
    throw Error(fmt::format("fused: {} reduces step {}, which has one value for each row", op.name,
                            operands[0].index));
  return add(std::move(step));
}

FusedValue FusedBuilder::add(FusedProgram::Step step) {
  if (program_.steps_.size() == FusedProgram::kMaxSteps)
    throw Error(fmt::format("fused: more than {} steps", FusedProgram::kMaxSteps));
  FusedShapes values;
  for (auto& operand : step.operands)
    values.add(operand.kind == FusedValue::absent ? std::nullopt
                                                  : std::optional(dtype_of(operand)));
  step.dtype = values.infer(step).dtype;
  program_.num_scalars_ += step.num_scalars;
  row_values_.push_back(is_row_value(step));
  program_.steps_.push_back(std::move(step));
  return {FusedValue::step, static_cast<uint32_t>(program_.steps_.size() - 1)};
}

bool FusedBuilder::is_row_value(const FusedProgram::Step& step) const {
  return step.reduces ||
         std::all_of(step.operands.begin(), step.operands.end(), [&](const FusedValue& o) {
           return o.kind == FusedValue::absent ||
                  (o.kind == FusedValue::step && row_values_[o.index]);
         });
}

FusedValue FusedBuilder::step(std::string_view op, std::span<const FusedValue> operands,
                              size_t num_scalars, std::string_view attr, int64_t value) {
  Attrs attrs;
  if (attr == "reverse")
    attrs.set("reverse", value != 0);
  else if (attr == "n" || attr == "dtype")
    attrs.set(attr == "n" ? "n" : "dtype", value);
  else if (attr == "correction")
    attrs.set("correction", value);
  else if (!attr.empty())
    throw Error(fmt::format("fused: no member has the attribute \"{}\"", attr));
  // Two operators may have the same name, one of them for integers.
  std::string why;
  for (const Op* own = all_ops(); own; own = own->next) try {
      if (op == own->name) return step(*own, operands, attrs, num_scalars);
    } catch (const DTypeError& e) {
      why = e.what();
    }
  if (!why.empty()) throw DTypeError(why);
  throw Error(fmt::format("fused: there is no operator \"{}\"", op));
}

void FusedBuilder::output(FusedValue step) {
  if (step.kind != FusedValue::step || step.index >= program_.steps_.size())
    throw Error("fused: an output is the result of a step");
  for (const uint32_t other : program_.results_)
    if (other == step.index)
      throw Error(fmt::format("fused: step {} is an output already", step.index));
  if (program_.results_.size() == FusedProgram::kMaxOutputs)
    throw Error(fmt::format("fused: more than {} outputs", FusedProgram::kMaxOutputs));
  program_.results_.push_back(step.index);
}

DType FusedBuilder::dtype_of(FusedValue value) const {
  const bool is_input = value.kind == FusedValue::input;
  if (value.kind == FusedValue::absent ||
      value.index >= (is_input ? input_dtypes_.size() : program_.steps_.size()))
    throw Error("fused: there is no such value");
  return is_input ? input_dtypes_[value.index] : program_.steps_[value.index].dtype;
}

// Inputs that no step reads are not in the text, so programs that differ only in these would be
// confused.
void FusedBuilder::require_inputs_are_read() const {
  for (uint32_t i = 0; i < program_.num_inputs_; ++i) {
    const auto reads = [i](const FusedValue& o) {
      return o.kind == FusedValue::input && o.index == i;
    };
    const bool is_read = std::any_of(
        program_.steps_.begin(), program_.steps_.end(),
        [&](auto& step) { return std::any_of(step.operands.begin(), step.operands.end(), reads); });
    if (!is_read) throw Error(fmt::format("fused: no step reads input {}", i));
  }
}

const FusedProgram& FusedBuilder::finish() {
  if (program_.num_inputs_ == 0 || program_.results_.empty())
    throw Error("fused: a program has inputs and outputs");
  require_inputs_are_read();
  std::string& text = program_.text_;
  text.clear();
  for (auto& step : program_.steps_) text += (text.empty() ? "" : "; ") + spelled(step);
  const char* between = " -> ";
  for (const uint32_t result : program_.results_) {
    text += fmt::format("{}t{}", between, result);
    between = ", ";
  }
  auto& kept = fused_programs.get();
  std::lock_guard lock(kept.mutex);
  if (const auto known = kept.all.find(text); known != kept.all.end()) return *known->second;
  for (auto& step : program_.steps_)
    step.attrs = with_texts(
        step.attrs, [&](const char* each) { return kept.texts.emplace(each).first->c_str(); });
  return *kept.all.emplace(text, std::make_unique<const FusedProgram>(program_)).first->second;
}

}  // namespace tenon
