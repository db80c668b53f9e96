#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/graph/dynamic.h>
#include <tenon/core/graph/program.h>

namespace tenon::graph {

namespace {

constexpr const char *kMoreSizes = "it takes calls of more sizes to tell",
                     *kNoHistory = "a result had a history in one call and not in the other";

NumberList numbers_of(OpenTrace& open, History* history) {
  NumberList list;
  list.visit(open);
  if (history) history->visit(list);
  return list;
}

}  // namespace

// Why a call tells nothing of calls of other sizes.
const char* DynamicProgram::sharing_fault(const Trace& trace, const Wiring& wiring) const {
  std::vector<bool> in_place(trace.values.size()), through(trace.values.size());
  for (size_t i = 0; i < trace.accesses.size(); ++i)
    if (const uint32_t value = trace.accesses[i].value; value != kAbsent)
      (wiring.input_of_access[i] >= 0 ? through : in_place)[value] = true;
  for (size_t v = 0; v < through.size(); ++v)
    if (through[v] && in_place[v]) return "an argument is used from outside as well";
  for (size_t k = 0; k < trace.inputs.size(); ++k) {
    const size_t like = first_in_memory_[k];
    if (like != k && (trace.inputs[k].leaf >= 0 || trace.inputs[like].leaf >= 0 ||
                      wiring.pinned[k] != wiring.pinned[like]))
      return "an argument shares memory with a gradient, or with a tensor from outside";
  }
  return nullptr;
}

DynamicProgram::DynamicProgram(Trace first, std::span<const Tensor* const> arguments, Sizes sizes,
                               const History* history)
    : history_(history ? history->copy() : nullptr),
      first_in_memory_(first_in_memory(first.inputs)),
      symbols_({std::move(sizes)}),
      why_(kMoreSizes) {
  first_.trace = std::move(first);
  first_.arguments = described(arguments);
}

std::string DynamicProgram::add(const Trace& trace, std::span<const Tensor* const> arguments,
                                Sizes sizes, History* history) {
  const bool second = numbers_.empty();
  const Match found = match_but_sizes(first_.trace, second ? nullptr : &wiring_, trace);
  if (!found.difference.empty()) return found.difference;
  if (first_in_memory(trace.inputs) != first_in_memory_)
    return "arguments share memory in another way than before";
  if (!history_ != !history) return kNoHistory;
  if (history)
    if (std::string difference = history_->compare_but_sizes(*history); !difference.empty())
      return difference;
  OpenTrace open = open_trace(trace, found.wiring, described(arguments)), first;
  NumberList numbers = numbers_of(open, history), of_first;
  if (second) {
    if (const char* fault = sharing_fault(trace, found.wiring)) return fault;
    first = open_trace(first_.trace, found.wiring, first_.arguments);
    of_first = numbers_of(first, history_.get());
  }
  if (!numbers.is_like(second ? of_first : numbers_[0]))
    return "tensors had another number of dimensions than before";
  if (second) {
    numbers_.push_back(std::move(of_first));
    first_ = std::move(first);
    wiring_ = found.wiring;
    Program::forget_arguments(first_.trace, wiring_);
    if (history) history_->note_arguments(*history);
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
  return history_ ? "a tensor, or the gradient of an operator," : "a tensor";
}

}  // namespace tenon::graph
