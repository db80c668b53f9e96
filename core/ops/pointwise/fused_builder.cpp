// How programs of pointwise operators are put together and kept.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise/fused.h>
#include <tenon/core/ops/pointwise/fused_rules.h>

namespace tenon {

namespace {

// Plans keep the text of their program, which therefore is never freed. There are as many as there
// are pieces of code that are compiled: texts hold neither shapes nor scalars.
struct FusedPrograms {
  ForkMutex mutex{ForkOrder::tables};
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
  if (!op.pointwise || op.execute || &op == &fused_op) return false;
  for (const Op* own = all_ops(); own; own = own->next)
    if (own == &op) return true;
  return false;  // a user's
}

const FusedProgram& fused_program(std::string_view text) {
  auto& kept = fused_programs.get();
  std::lock_guard lock(kept.mutex);
  const auto it = kept.all.find(text);
  if (it == kept.all.end())
    throw Error(fmt::format("fused: nobody built the program \"{}\"", text));
  return *it->second;
}

FusedValue FusedBuilder::input(DType dtype) {
  if (input_dtypes_.size() == FusedProgram::kMostInputs)
    throw Error(fmt::format("fused: more than {} inputs", FusedProgram::kMostInputs));
  input_dtypes_.push_back(dtype);
  return {FusedValue::input, static_cast<uint32_t>(program_.num_inputs_++)};
}

FusedValue FusedBuilder::step(const Op& op, std::span<const FusedValue> operands,
                              const Attrs& attrs, size_t num_scalars) {
  if (!can_be_fused(op)) throw Error(fmt::format("fused: {} cannot be a member", op.name));
  if (program_.steps_.size() == FusedProgram::kMostSteps)
    throw Error(fmt::format("fused: more than {} steps", FusedProgram::kMostSteps));
  FusedProgram::Step step{
      &op,        DType::f32, {operands.begin(), operands.end()}, attrs, program_.num_scalars_,
      num_scalars};
  FusedShapes values;
  for (auto& operand : step.operands)
    values.add(operand.kind == FusedValue::absent ? std::nullopt
                                                  : std::optional(dtype_of(operand)));
  step.dtype = values.infer(step).dtype;
  program_.num_scalars_ += num_scalars;
  program_.steps_.push_back(std::move(step));
  return {FusedValue::step, static_cast<uint32_t>(program_.steps_.size() - 1)};
}

FusedValue FusedBuilder::step(std::string_view op, std::span<const FusedValue> operands,
                              size_t num_scalars, std::string_view attr, int64_t value) {
  Attrs attrs;
  if (attr == "reverse")
    attrs.set("reverse", value != 0);
  else if (attr == "n" || attr == "dtype")
    attrs.set(attr == "n" ? "n" : "dtype", value);
  else if (!attr.empty())
    throw Error(fmt::format("fused: no member has the attribute \"{}\"", attr));
  // Two operators may have one name, of which one takes whole numbers.
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
  if (program_.results_.size() == FusedProgram::kMostOutputs)
    throw Error(fmt::format("fused: more than {} outputs", FusedProgram::kMostOutputs));
  program_.results_.push_back(step.index);
}

DType FusedBuilder::dtype_of(FusedValue value) const {
  const bool is_input = value.kind == FusedValue::input;
  if (value.kind == FusedValue::absent ||
      value.index >= (is_input ? input_dtypes_.size() : program_.steps_.size()))
    throw Error("fused: there is no such value");
  return is_input ? input_dtypes_[value.index] : program_.steps_[value.index].dtype;
}

// The text says nothing of inputs that no step reads: programs that differ in these alone would be
// taken for one.
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
  auto& place = kept.all[text];
  if (!place) place = std::make_unique<const FusedProgram>(program_);
  return *place;
}

}  // namespace tenon
