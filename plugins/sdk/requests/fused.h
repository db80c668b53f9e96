// `fused`: several pointwise operators as one, a program of them in the request's attribute
// "program", read once for every plugin. docs/operators.md has the language.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/plugins/sdk/requests/checks.h>
#include <tenon/plugins/sdk/requests/fused_members.h>

namespace tenon::sdk {

// What a program may have at most.
struct FusedLimits {
  static constexpr size_t inputs = 24, outputs = 8, steps = 64;
};

// Where a step finds an operand.
struct FusedOperand {
  enum Kind : uint8_t { absent, input, step } kind = absent;
  uint32_t index = 0;
};

// One member at work.
struct FusedStep {
  const FusedMember* member = nullptr;
  tn_dtype dtype = TN_F32;  // of its result, to which it is rounded before anybody reads it
  uint32_t num_operands = 0;
  FusedOperand operands[3];
  uint32_t first_scalar = 0, num_scalars = 0;  // among those of the run
  bool has_attr = false;                       // member->attr is given
  int64_t attr = 0;

  // Returns the attribute with which a request of the member alone comes.
  tn_attr attribute() const {
    return {sizeof(tn_attr), member->attr, member->attr_kind, attr, 0, nullptr, 0, nullptr};
  }
};

struct FusedProgram {
  std::vector<FusedStep> steps;
  std::vector<uint32_t> results;  // for each output, the step that makes it
  uint32_t num_scalars = 0;
};

namespace detail {

// Reads the text of a program. Nothing in it is trusted.
class FusedReader {
 public:
  explicit FusedReader(std::string_view text) : text_(text) {}

  FusedProgram read() {
    FusedProgram program;
    do {
      if (program.steps.size() == FusedLimits::steps)
        unsupported("the program has more than {} steps", FusedLimits::steps);
      program.steps.push_back(step(program));
    } while (take(";"));
    expect("->");
    do {
      if (program.results.size() == FusedLimits::outputs)
        unsupported("the program has more than {} results", FusedLimits::outputs);
      program.results.push_back(result(program));
    } while (take(","));
    if (!rest().empty()) fail("the end");
    return program;
  }

 private:
  std::string_view rest() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return text_.substr(at_);
  }
  bool take(std::string_view token) {
    if (!rest().starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail(token);
  }
  [[noreturn]] void fail(std::string_view wanted) {
    invalid("the program needs \"{}\" at character {}, found \"{}\"", wanted, at_,
            rest().substr(0, 16));
  }
  std::string_view word() {
    const auto text = rest();
    size_t size = 0;
    while (size < text.size() && ((text[size] >= 'a' && text[size] <= 'z') || text[size] == '_' ||
                                  (text[size] >= '0' && text[size] <= '9')))
      ++size;
    at_ += size;
    return text.substr(0, size);
  }
  template <class Int>
  Int number() {
    const auto text = rest();
    Int value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) fail("a number");
    at_ += static_cast<size_t>(end - text.data());
    return value;
  }

  FusedStep step(FusedProgram& program) {
    FusedStep step;
    const auto op = word();
    step.member = fused_member(op);
    if (!step.member) unsupported("step {}: no member \"{}\" is known", program.steps.size(), op);
    if (take("[")) attribute(step);
    expect("(");
    if (!take(")")) {
      do operand(program, step);
      while (take(","));
      expect(")");
    }
    expect(":");
    step.dtype = dtype();
    program.num_scalars += step.num_scalars;
    check(program, step);
    return step;
  }

  // [reverse=true]
  void attribute(FusedStep& step) {
    const auto name = word();
    if (!step.member->attr || name != step.member->attr)
      unsupported("{}: attribute \"{}\" is not known to this plugin", step.member->op, name);
    expect("=");
    step.has_attr = true;
    if (step.member->attr_kind == TN_ATTR_BOOL) {
      step.attr = take("true");
      if (!step.attr) expect("false");
    } else {
      step.attr = number<int64_t>();
    }
    expect("]");
  }

  // x0, t1, _ for an absent one, #2 for two scalars of the run, which come last.
  void operand(const FusedProgram& program, FusedStep& step) {
    if (step.num_scalars > 0) fail(")");
    if (take("#")) {
      step.first_scalar = program.num_scalars;
      step.num_scalars = number<uint32_t>();
      if (step.num_scalars == 0 || step.num_scalars > 4) fail("1 to 4 scalars");
      return;
    }
    if (step.num_operands == std::size(step.operands))
      invalid("step {}, {}: more than 3 operands", program.steps.size(), step.member->op);
    auto& operand = step.operands[step.num_operands++];
    if (take("_")) return;
    operand.kind = take("x") ? FusedOperand::input : FusedOperand::step;
    if (operand.kind == FusedOperand::step && !take("t")) fail("an operand");
    operand.index = number<uint32_t>();
    if (operand.kind == FusedOperand::step && operand.index >= program.steps.size())
      invalid("step {}, {}: reads the result of step {}, which does not come before it",
              program.steps.size(), step.member->op, operand.index);
  }

  tn_dtype dtype() {
    const auto name = word();
    for (tn_dtype t = TN_F32; t <= TN_BOOL; ++t)
      if (name == dtype_name(t)) return t;
    unsupported("no dtype \"{}\" is known", name);
  }

  uint32_t result(const FusedProgram& program) {
    expect("t");
    const auto step = number<uint32_t>();
    if (step >= program.steps.size())
      invalid("result {} is that of step {}, but there are {}", program.results.size(), step,
              program.steps.size());
    if (std::find(program.results.begin(), program.results.end(), step) != program.results.end())
      invalid("step {} is two of the results", step);
    return step;
  }

  // How many operands and scalars the member takes.
  static void check(const FusedProgram& program, const FusedStep& step) {
    const FusedMember& m = *step.member;
    bool fits = step.num_operands == m.operands, last_is_absent = false;
    for (uint32_t k = 0; k < step.num_operands; ++k)
      if (step.operands[k].kind == FusedOperand::absent) {
        fits = fits && m.number_for_last && k + 1 == step.num_operands;
        last_is_absent = true;
      }
    if (!fits)
      invalid("step {}, {}: takes {} operands{}", program.steps.size(), m.op, m.operands,
              m.number_for_last ? ", of which the last may be absent" : "");
    const uint32_t scalars = m.scalars + (last_is_absent ? 1u : 0u);
    if (step.num_scalars != scalars)
      invalid("step {}, {}: takes {} scalars, found {}", program.steps.size(), m.op, scalars,
              step.num_scalars);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace detail

// A program and the request that it came with, which fit together: every tensor has the shape of
// the outputs, and every step gets and makes dtypes that its member can.
struct FusedRequest : FusedProgram {
  std::vector<tn_dtype> input_dtypes;
  const tn_tensor_desc* shape = nullptr;  // an output that is wanted, of the request

  static FusedRequest from(const Request& request) {
    const tn_attr* text = request.find("program");
    if (!text || text->kind != TN_ATTR_STRING || !text->s)
      invalid("attribute \"program\" is missing or of another kind");
    FusedRequest r{detail::FusedReader(text->s).read(), {}, nullptr};
    r.read_tensors(request);
    for (size_t s = 0; s < r.steps.size(); ++s) r.check_dtypes(s);
    for (size_t i = 0; i < r.results.size(); ++i)
      if (request.has_output(i) && request.output(i).dtype != r.steps[r.results[i]].dtype)
        invalid("output {} is {}, but step {} makes {}", i, dtype_name(request.output(i).dtype),
                r.results[i], dtype_name(r.steps[r.results[i]].dtype));
    return r;
  }

  tn_dtype dtype_of(const FusedOperand& operand) const {
    return operand.kind == FusedOperand::input ? input_dtypes[operand.index]
                                               : steps[operand.index].dtype;
  }

 private:
  void read_tensors(const Request& request) {
    if (request.num_inputs() == 0 || request.num_inputs() > FusedLimits::inputs)
      unsupported("takes 1 to {} inputs, found {}", FusedLimits::inputs, request.num_inputs());
    if (request.num_outputs() != results.size())
      invalid("the program has {} results, the request {} outputs", results.size(),
              request.num_outputs());
    if (request.num_scalars() != num_scalars)
      invalid("the program reads {} scalars, found {}", num_scalars, request.num_scalars());
    for (size_t i = 0; i < results.size(); ++i)
      if (request.has_output(i)) take_shape(request.output(i));
    if (!shape) invalid("no output is wanted");
    for (size_t i = 0; i < request.num_inputs(); ++i) {
      take_shape(request.input(i));
      input_dtypes.push_back(request.input(i).dtype);
    }
  }
  void take_shape(const tn_tensor_desc& d) {
    if (!shape) shape = &d;
    if (!same_shape(d, *shape))
      invalid("all tensors have the result's shape; found {} and {}", shape_text(d),
              shape_text(*shape));
  }

  void check_dtypes(size_t number) const {
    const FusedStep& step = steps[number];
    const FusedMember& m = *step.member;
    tn_dtype common = -1;
    for (uint32_t k = 0; k < step.num_operands; ++k) {
      const FusedOperand& operand = step.operands[k];
      if (operand.kind == FusedOperand::absent) continue;
      if (operand.kind == FusedOperand::input && operand.index >= input_dtypes.size())
        invalid("step {}, {}: reads input {}, but there are {}", number, m.op, operand.index,
                input_dtypes.size());
      const tn_dtype dtype = dtype_of(operand);
      if (m.selects() && k == 0) {
        if (dtype != TN_BOOL)
          invalid("step {}, {}: its condition is {}, not bool", number, m.op, dtype_name(dtype));
        continue;
      }
      if (common >= 0 && dtype != common)
        invalid("step {}, {}: its operands are {} and {}, but must have one dtype", number, m.op,
                dtype_name(common), dtype_name(dtype));
      common = dtype;
    }
    if (common < 0 || common > TN_BOOL || !(m.takes >> common & 1))
      invalid("step {}, {}: does not take {}", number, m.op, dtype_name(common));
    const bool fits = m.result == FusedResult::stated ||
                      step.dtype == (m.result == FusedResult::boolean ? TN_BOOL : common);
    if (!fits)
      invalid("step {}, {}: of {} it does not make {}", number, m.op, dtype_name(common),
              dtype_name(step.dtype));
  }
};

}  // namespace tenon::sdk
