#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/graph/describe.h>
#include <tenon/core/graph/dynamic.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

namespace {

constexpr const char* kMoreSizes = "it takes calls of more sizes to tell";

std::vector<TensorDesc> described(std::span<const Tensor* const> arguments) {
  std::vector<TensorDesc> all;
  for (auto* argument : arguments)
    all.push_back(argument->defined() ? describe(impl_of(*argument))
                                      : describe(DType::f32, {}, {}));
  return all;
}

NumberList numbers_of(OpenTrace& open) {
  NumberList list;
  list.visit(open);
  return list;
}

// Why a call tells nothing of calls of other sizes.
const char* fault_of(const Trace& trace, const Wiring& wiring) {
  std::vector<bool> in_place(trace.values.size()), through(trace.values.size());
  for (size_t i = 0; i < trace.accesses.size(); ++i)
    if (const uint32_t value = trace.accesses[i].value; value != kAbsent)
      (wiring.input_of_access[i] >= 0 ? through : in_place)[value] = true;
  for (size_t v = 0; v < through.size(); ++v)
    if (through[v] && in_place[v]) return "an argument is used from outside as well";
  for (size_t a = 0; a < trace.inputs.size(); ++a)
    for (size_t b = a + 1; b < trace.inputs.size(); ++b)
      if (trace.inputs[a].id == trace.inputs[b].id)
        return "two arguments or gradients share memory";
  return nullptr;
}

}  // namespace

DynamicProgram::DynamicProgram(Trace first, std::span<const Tensor* const> arguments, Sizes sizes)
    : symbols_({std::move(sizes)}), why_(kMoreSizes) {
  first_.trace = std::move(first);
  first_.arguments = described(arguments);
}

std::string DynamicProgram::add(const Trace& trace, std::span<const Tensor* const> arguments,
                                Sizes sizes) {
  const bool second = numbers_.empty();
  const Match found = match_but_sizes(first_.trace, second ? nullptr : &wiring_, trace);
  if (!found.difference.empty()) return found.difference;
  OpenTrace open = open_trace(trace, found.wiring, described(arguments)), first;
  NumberList numbers = numbers_of(open), of_first;
  if (second) {
    if (const char* fault = fault_of(trace, found.wiring)) return fault;
    first = open_trace(first_.trace, found.wiring, first_.arguments);
    of_first = numbers_of(first);
  }
  if (!numbers.is_like(second ? of_first : numbers_[0]))
    return "tensors had another number of dimensions than before";
  if (second) {
    numbers_.push_back(std::move(of_first));
    first_ = std::move(first);
    wiring_ = found.wiring;
    Program::forget_arguments(first_.trace, wiring_);
  }
  numbers_.push_back(std::move(numbers));
  Program::take_host_work(first_.trace, trace);
  std::vector<Sizes> calls = symbols_.calls();
  calls.push_back(std::move(sizes));
  symbols_ = SizeSymbols(std::move(calls));
  find_laws();
  return "";
}

// ---- laws

void DynamicProgram::find_laws() {
  integers_.clear();
  scalars_.clear();
  ready_ = false;
  why_ = symbols_.count() <= SizeSymbols::kMostSymbols
             ? kMoreSizes
             : fmt::format("sizes differ in more than {} ways", SizeSymbols::kMostSymbols);
  if (!symbols_.enough()) return;
  std::vector<int64_t> values;
  for (size_t at = 0; at < numbers_[0].integers.size(); ++at) {
    values.clear();
    for (auto& call : numbers_) values.push_back(call.integers[at]);
    if (std::all_of(values.begin(), values.end(), [](int64_t v) { return v == kAnyNumber; }))
      continue;
    IntegerLaw law;
    const auto known = symbols_.find(values, law);
    if (known == SizeSymbols::Known::none)
      why_ = owner_of(at) +
             " has a size, or a place in memory, that does not follow from sizes of arguments";
    if (known != SizeSymbols::Known::one) return;
    if (law.monomial != kConstant || values[0] == kAnyNumber) integers_.push_back({at, law});
  }
  for (size_t at = 0; at < numbers_[0].scalars.size(); ++at)
    if (!find_law_of_scalar(at)) return;
  ready_ = true;
  why_.clear();
}

// Nothing but its bits says whether a number is whole: whole ones of less than 53 bits are no
// normal doubles.
bool DynamicProgram::find_law_of_scalar(size_t at) {
  std::vector<int64_t> whole;
  std::vector<double> real;
  bool are_real = true;
  for (auto& call : numbers_) {
    whole.push_back(call.scalars[at].value.i);
    real.push_back(call.scalars[at].value.f);
    are_real = are_real && std::isnormal(real.back());
  }
  ScalarAt scalar{.at = at, .integer = {}, .real = {}};
  const auto known =
      are_real ? symbols_.find(real, scalar.real) : symbols_.find(whole, scalar.integer);
  if (known == SizeSymbols::Known::none)
    why_ = "a number that an operator is given does not follow from sizes of arguments";
  if (known != SizeSymbols::Known::one) return false;
  if (scalar.real.monomial != kConstant || scalar.integer.monomial != kConstant)
    scalars_.push_back(scalar);
  return true;
}

// Says for people whose number it is.
std::string DynamicProgram::owner_of(size_t integer) const {
  OpenTrace open = first_;
  NumberList until;
  for (size_t i = 0; i < open.nodes.size(); ++i) {
    const TraceNode& node = first_.trace.nodes[i];
    until.visit(open.nodes[i], open.trace.nodes[i]);
    if (until.integers.size() <= integer) continue;
    const auto path = path_string(node.path);
    return fmt::format("operator {}, {}{}{},", i, node.describe(),
                       path.empty() ? "" : ", in module ", path);
  }
  return "a tensor";
}

// ---- calls of other sizes

class DynamicProgram::Following final : public NumberVisitor {
 public:
  Following(const DynamicProgram& of, std::span<const int64_t> values) : of_(of), values_(values) {}

  void integer(int64_t& number) override {
    const size_t at = integers_++;
    if (next_integer_ == of_.integers_.size() || of_.integers_[next_integer_].at != at) return;
    const auto followed = follow(of_.integers_[next_integer_++].law, values_);
    fits_ = fits_ && followed && *followed >= 0;
    if (fits_) number = *followed;
  }
  // Operators often do something else for sizes of 0 and 1, and views become copies or the other
  // way round.
  void size(int64_t& number) override {
    const size_t before = next_integer_;
    integer(number);
    if (next_integer_ != before && of_.integers_[before].law.monomial != kConstant)
      fits_ = fits_ && number >= 2;
  }
  void stride_of_one(int64_t& number) override { integer(number); }
  void scalar(Scalar& number) override {
    const size_t at = scalars_++;
    if (next_scalar_ == of_.scalars_.size() || of_.scalars_[next_scalar_].at != at) return;
    const ScalarAt& law = of_.scalars_[next_scalar_++];
    if (law.real.monomial == kConstant) {
      const auto followed = follow(law.integer, values_);
      fits_ = fits_ && followed;
      number = Scalar::integer(followed.value_or(0));
    } else {
      const auto followed = follow(law.real, values_);
      fits_ = fits_ && followed;
      number = Scalar(followed.value_or(0));
    }
  }
  bool fits() const { return fits_; }

 private:
  const DynamicProgram& of_;
  const std::span<const int64_t> values_;
  size_t integers_ = 0, next_integer_ = 0, scalars_ = 0, next_scalar_ = 0;
  bool fits_ = true;
};

namespace {

// Why the plan that was made for other sizes cannot take the place of the one that is known.
const char* fault_of(const PlanEntry& made, const PlanEntry& known, const OpenTrace::Node& node,
                     const CallDesc& seen) {
  if (!made.plan || made.make_contiguous != known.make_contiguous ||
      made.flattened != known.flattened || made.copy_format != known.copy_format)
    return "is computed in another way";
  if (made.outputs.size() != node.outputs.size()) return "has other results";
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const SavedOutput o = output_of_plan(made, seen, i), &expected = node.outputs[i];
    if (o.kind != expected.kind || o.input != expected.input || o.dtype != expected.dtype ||
        o.shape != expected.shape || !same_strides(o.shape, o.strides, expected.strides))
      return "makes results of other shapes, or elsewhere in memory";
  }
  return nullptr;
}

bool same(std::span<const TensorDesc> a, std::span<const TensorDesc> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) {
    return x.shape == y.shape && same_strides(x.shape, x.strides, y.strides);
  });
}

// How many bytes an input or output of a node spans; inputs come first.
uint64_t extent_of(const TraceNode& node, const OpenTrace::Node& opened, const CallDesc& seen,
                   uint32_t i) {
  if (node.work) {
    const HostWork::Form& form = node.work->form_of(i);
    return extent_in_memory(form.dtype, form.shape, form.strides);
  }
  if (i >= node.num_inputs) {
    const SavedOutput& o = opened.outputs[i - node.num_inputs];
    return extent_in_memory(o.dtype, o.shape, o.strides);
  }
  const auto& t = seen.inputs[i];
  return t ? extent_in_memory(t->dtype, t->shape, t->strides) : 0;
}

// Whether all that a node reads and writes lies in its values.
bool lies_inside(const Trace& trace, const Wiring& wiring, const TraceNode& node,
                 const OpenTrace::Node& opened, const CallDesc& seen) {
  for (uint32_t i = 0; i < node.num_inputs + node.num_outputs; ++i) {
    const Access& access = trace.accesses[node.first_access + i];
    if (access.value == kAbsent) continue;
    const int32_t input = wiring.input_of_access[node.first_access + i];
    const uint64_t all = input >= 0 ? trace.inputs[static_cast<size_t>(input)].extent
                                    : trace.values[access.value].bytes;
    if (access.offset > all || extent_of(node, opened, seen, i) > all - access.offset) return false;
  }
  return true;
}

bool kept_lies_inside(const Trace& trace, const Kept& kept) {
  const uint64_t all = trace.values[kept.value].bytes, size = size_of(kept.dtype),
                 bytes = extent_in_memory(kept.dtype, kept.shape, kept.strides);
  uint64_t begin;
  return !__builtin_mul_overflow(static_cast<uint64_t>(kept.offset), size, &begin) &&
         begin <= all && bytes <= all - begin;
}

}  // namespace

// Arguments are told apart from all else by memory that nobody uses, since those of each call have
// other memory.
void DynamicProgram::take_inputs(Trace& trace, std::span<const Tensor* const> arguments) const {
  for (size_t k = 0; k < trace.inputs.size(); ++k) {
    Input& input = trace.inputs[k];
    if (input.argument < 0 || wiring_.pinned[k]) continue;
    const TensorImpl& t = impl_of(*arguments[static_cast<size_t>(input.argument)]);
    input.extent = extent_in_memory(t.dtype, t.shape, t.strides);
  }
  for (size_t k = 0; k < trace.inputs.size(); ++k) {
    if (wiring_.pinned[k]) continue;
    Input& input = trace.inputs[k];
    input.held = context_of(trace.device).memory->allocate(1);
    input.id = input.held.get();
    for (size_t i = 0; i < trace.accesses.size(); ++i) {
      if (wiring_.input_of_access[i] != static_cast<int32_t>(k)) continue;
      Value& value = trace.values[trace.accesses[i].value];
      value.held = input.held;
      value.id = input.id;
    }
  }
}

// Returns what is wrong with the node; null if nothing is.
const char* DynamicProgram::plan_again(Trace& trace, size_t at,
                                       const OpenTrace::Node& opened) const {
  TraceNode& node = trace.nodes[at];
  CallDesc seen;
  if (node.plan) {
    const auto known = std::exchange(node.plan, plans_of(*node.plan->context).find(opened.call));
    seen = call_as_seen(*node.plan, node.flat ? &node.shape : nullptr);
    if (const char* fault = fault_of(*node.plan, *known, opened, seen)) return fault;
  }
  return lies_inside(trace, wiring_, node, opened, seen) ? nullptr : "leads out of its memory";
}

std::optional<DynamicProgram::Call> DynamicProgram::derive(std::span<const Tensor* const> arguments,
                                                           const Sizes& sizes,
                                                           std::string& why) const {
  const auto values = symbols_.values(sizes);
  if (!values) {
    why = "sizes differ that were equal in all calls before";
    return std::nullopt;
  }
  OpenTrace open = first_;
  try {
    Following following(*this, *values);
    following.visit(open);
    if (!following.fits()) {
      why = "a size, or a place in memory, comes out as none that follows";
      return std::nullopt;
    }
    if (!same(open.arguments, described(arguments))) {
      why = "arguments lie otherwise in memory";
      return std::nullopt;
    }
    Trace& trace = open.trace;
    trace.inside_bytes = 0;
    take_inputs(trace, arguments);
    for (size_t i = 0; i < trace.nodes.size(); ++i)
      if (const char* fault = plan_again(trace, i, open.nodes[i])) {
        why = fmt::format("operator {}, {}, {}", i, trace.nodes[i].describe(), fault);
        return std::nullopt;
      }
    for (auto& kept : trace.kept)
      if (!kept_lies_inside(trace, kept)) {
        why = "a result leads out of its memory";
        return std::nullopt;
      }
  } catch (const DeviceError&) {
    throw;
  } catch (const Error& error) {
    why = error.what();
    return std::nullopt;
  }
  return Call{std::move(open.trace), wiring_};
}

}  // namespace tenon::graph
