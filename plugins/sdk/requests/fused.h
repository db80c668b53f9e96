// `fused`: several pointwise operators, and reductions of rows, as one: a program of them in the
// request's attribute "program", read once for every plugin. docs/operators.md has the language.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include <tenon/plugins/sdk/requests/checks.h>
#include <tenon/plugins/sdk/requests/fused_members.h>
#include <tenon/plugins/sdk/requests/pointwise.h>

namespace tenon::sdk {

// The most inputs, outputs and steps that a program may have.
struct FusedLimits {
  static constexpr size_t kMaxInputs = 24, kMaxOutputs = 8, kMaxSteps = 64;
};

// Says where a step finds an operand: nowhere, in an input, or in the result of a step.
struct FusedOperand {
  enum Kind : uint8_t { absent, input, step } kind = absent;
  uint32_t index = 0;
};

// One member at work: its operands, its scalars among those of the run, and its attribute.
struct FusedStep {
  const FusedMember* member = nullptr;
  tn_dtype dtype = TN_F32;  // its result is rounded to this before anybody reads it
  uint32_t num_operands = 0;
  FusedOperand operands[3];
  uint32_t first_scalar = 0, num_scalars = 0;
  bool has_attr = false;
  int64_t attr = 0;

  // Returns the attribute with which a request of the member alone comes.
  tn_attr attribute() const {
    return {sizeof(tn_attr), member->attr, member->attr_kind, attr, 0, nullptr, 0, nullptr};
  }
};

// Steps in order, and for each output the step that makes it.
struct FusedProgram {
  std::vector<FusedStep> steps;
  std::vector<uint32_t> results;
  uint32_t num_scalars = 0;

  // Returns whether a step reduces rows.
  bool reduces() const {
    return std::any_of(steps.begin(), steps.end(), [](auto& s) { return s.member->reduces; });
  }
};

namespace detail {

// Reads the text of a program. Nothing in it is trusted.
class FusedReader {
 public:
  explicit FusedReader(std::string_view text) : text_(text) {}

  FusedProgram read() {
    FusedProgram program;
    do {
      if (program.steps.size() == FusedLimits::kMaxSteps)
        unsupported("the program has more than {} steps", FusedLimits::kMaxSteps);
      program.steps.push_back(step(program));
    } while (take(";"));
    expect("->");
    do {
      if (program.results.size() == FusedLimits::kMaxOutputs)
        unsupported("the program has more than {} results", FusedLimits::kMaxOutputs);
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

  // Requires as many operands and scalars as the member takes, and the attribute that it needs.
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
    if (m.needs_attr() && !step.has_attr)
      invalid("step {}, {}: attribute \"{}\" is missing", program.steps.size(), m.op, m.attr);
    if (m.op == std::string_view("polygamma") && !has_polygamma(step.attr))
      invalid("step {}, {}: n is 1 to 1000, found {}", program.steps.size(), m.op, step.attr);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace detail

// A program and the request that it came with, which fit together: every step gets and makes dtypes
// that its member can, and tensors have the shapes that they need. Otherwise reading it throws
// TN_CODE_INVALID_ARGUMENT, or TN_CODE_UNSUPPORTED for what this version does not know.
struct FusedRequest : FusedProgram {
  std::vector<tn_dtype> input_dtypes;
  // An output that is wanted, of the request; NULL if the program reduces.
  const tn_tensor_desc* shape = nullptr;
  // The shape of all inputs together, row-major, whose last dimension is a row. Of a program that
  // reduces, inputs come as they are, and broadcast to it.
  tn_tensor_desc whole{};

  // Reads a program of pointwise members, in which every tensor has the shape of the outputs, and
  // refuses one that reduces.
  static FusedRequest from(const Request& request) { return read(request, false); }
  // Reads a program of any members.
  static FusedRequest with_reductions(const Request& request) { return read(request, true); }

  // Returns the dtype of an operand that is not absent.
  tn_dtype dtype_of(const FusedOperand& operand) const {
    return operand.kind == FusedOperand::input ? input_dtypes[operand.index]
                                               : steps[operand.index].dtype;
  }
  // Returns whether an operand is one value for each row: an input with a last dimension of 1, the
  // result of a reduction, and what is made of these alone.
  bool is_row_value(const FusedOperand& operand) const {
    return operand.kind == FusedOperand::input ? input_is_row_value[operand.index]
                                               : step_is_row_value[operand.index];
  }
  // Returns the tensor in the shape of `whole`, with strides of 0 where it broadcasts.
  tn_tensor_desc expanded(const tn_tensor_desc& d) const {
    tn_tensor_desc result = whole;
    result.dtype = d.dtype;
    const uint32_t missing = whole.rank - d.rank;
    for (uint32_t k = 0; k < whole.rank; ++k)
      result.strides[k] = k < missing || (d.shape[k - missing] == 1 && whole.shape[k] != 1)
                              ? 0
                              : d.strides[k - missing];
    return result;
  }

 private:
  std::vector<bool> input_is_row_value, step_is_row_value;

  static FusedRequest read(const Request& request, bool may_reduce) {
    const tn_attr* text = request.find("program");
    if (!text || text->kind != TN_ATTR_STRING || !text->s)
      invalid("attribute \"program\" is missing or of another kind");
    FusedRequest r;
    static_cast<FusedProgram&>(r) = detail::FusedReader(text->s).read();
    const bool reduces = r.reduces();
    if (reduces && !may_reduce) unsupported("the program reduces rows");
    r.require_counts(request);
    reduces ? r.read_rows(request) : r.read_tensors(request);
    for (size_t s = 0; s < r.steps.size(); ++s) r.check_dtypes(s);
    if (reduces) r.check_rows(request);
    for (size_t i = 0; i < r.results.size(); ++i)
      if (request.has_output(i) && request.output(i).dtype != r.steps[r.results[i]].dtype)
        invalid("output {} is {}, but step {} makes {}", i, dtype_name(request.output(i).dtype),
                r.results[i], dtype_name(r.steps[r.results[i]].dtype));
    return r;
  }

  void require_counts(const Request& request) const {
    if (request.num_inputs() == 0 || request.num_inputs() > FusedLimits::kMaxInputs)
      unsupported("takes 1 to {} inputs, found {}", FusedLimits::kMaxInputs, request.num_inputs());
    if (request.num_outputs() != results.size())
      invalid("the program has {} results, the request {} outputs", results.size(),
              request.num_outputs());
    if (request.num_scalars() != num_scalars)
      invalid("the program reads {} scalars, found {}", num_scalars, request.num_scalars());
    bool wanted = false;
    for (size_t i = 0; i < results.size(); ++i) wanted = wanted || request.has_output(i);
    if (!wanted) invalid("no output is wanted");
  }

  void read_tensors(const Request& request) {
    for (size_t i = 0; i < results.size(); ++i)
      if (request.has_output(i)) take_shape(request.output(i));
    whole = *shape;
    make_row_major();
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

  void make_row_major() {
    int64_t stride = 1;
    for (uint32_t d = whole.rank; d-- > 0; stride *= whole.shape[d]) whole.strides[d] = stride;
  }

  void read_rows(const Request& request) {
    whole.struct_size = sizeof whole;
    for (size_t i = 0; i < request.num_inputs(); ++i) {
      broadcast(request.input(i));
      input_dtypes.push_back(request.input(i).dtype);
    }
    if (whole.rank == 0) invalid("single numbers have no rows to reduce");
    make_row_major();
  }
  void broadcast(const tn_tensor_desc& d) {
    tn_tensor_desc both = d.rank > whole.rank ? d : whole;
    const tn_tensor_desc& other = d.rank > whole.rank ? whole : d;
    for (uint32_t k = 1; k <= other.rank; ++k) {
      int64_t& size = both.shape[both.rank - k];
      const int64_t beside = other.shape[other.rank - k];
      if (size != beside && size != 1 && beside != 1)
        invalid("the inputs do not broadcast; found {} and {}", shape_text(d), shape_text(whole));
      if (size == 1) size = beside;
    }
    whole = both;
  }

  // A reduction needs rows, and outputs have the whole shape, or one value for each row.
  void check_rows(const Request& request) {
    const int64_t row = whole.shape[whole.rank - 1];
    for (size_t i = 0; i < request.num_inputs(); ++i) {
      const tn_tensor_desc& d = request.input(i);
      input_is_row_value.push_back(row != 1 && (d.rank == 0 || d.shape[d.rank - 1] == 1));
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      bool of_row_values = true;
      for (uint32_t k = 0; k < steps[s].num_operands; ++k)
        if (steps[s].operands[k].kind != FusedOperand::absent)
          of_row_values = of_row_values && is_row_value(steps[s].operands[k]);
      if (steps[s].member->reduces && of_row_values)
        invalid("step {}, {}: reduces what has one value for each row", s, steps[s].member->op);
      step_is_row_value.push_back(steps[s].member->reduces || of_row_values);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!request.has_output(i)) continue;
      tn_tensor_desc expected = whole;
      if (step_is_row_value[results[i]]) expected.shape[whole.rank - 1] = 1;
      if (!same_shape(request.output(i), expected))
        invalid("output {} has shape {}, but the program makes {}", i,
                shape_text(request.output(i)), shape_text(expected));
    }
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
    const bool fits = m.result == FusedResult::stated || step.dtype == made_of(m, common);
    if (!fits)
      invalid("step {}, {}: of {} it does not make {}", number, m.op, dtype_name(common),
              dtype_name(step.dtype));
  }
  static tn_dtype made_of(const FusedMember& m, tn_dtype operands) {
    const bool is_whole = detail::kFusedIntegers >> operands & 1 || operands == TN_BOOL;
    return m.result == FusedResult::boolean             ? TN_BOOL
           : m.result == FusedResult::total && is_whole ? TN_I64
                                                        : operands;
  }
};

}  // namespace tenon::sdk
