#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
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
      calls_({std::move(sizes)}),
      symbols_(calls_),
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
    note_alike(of_first);
    numbers_.push_back(std::move(of_first));
    first_ = std::move(first);
    wiring_ = found.wiring;
    Program::forget_arguments(first_.trace, wiring_);
    if (history) history_->note_arguments(*history);
  }
  note_alike(numbers);
  numbers_.push_back(std::move(numbers));
  Program::take_host_work(first_.trace, trace);
  calls_.push_back(std::move(sizes));
  find_laws();
  return "";
}

// ---- laws

void DynamicProgram::Alike::part(std::span<const int64_t> numbers) {
  group.resize(numbers.size());
  first.clear();
  std::map<std::pair<size_t, int64_t>, size_t> groups;
  for (size_t at = 0; at < numbers.size(); ++at) {
    const auto [found, is_new] = groups.emplace(std::pair(group[at], numbers[at]), first.size());
    if (is_new) first.push_back(at);
    group[at] = found->second;
  }
}

void DynamicProgram::note_alike(const NumberList& numbers) {
  alike_integers_.part(numbers.integers);
  std::vector<int64_t> bits;
  for (const Scalar& number : numbers.scalars) bits.push_back(number.value.i);
  alike_scalars_.part(bits);
}

void DynamicProgram::find_laws() {
  std::vector<size_t> all(calls_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  selection_ = {};
  const Found found = find_laws_of(all);
  ready_ = found == Found::laws;
  if (found != Found::none) return;
  std::string why = std::move(why_);
  ready_ = find_laws_of_some();
  if (ready_) return;
  selection_ = {};
  symbols_ = SizeSymbols(calls_);
  why_ = std::move(why);
}

// An odd batch over two devices has parts of two sizes, so that no law fits odd and even batches.
// Calls whose sizes leave the same remainder may still have laws. These hold for others of that
// remainder if they agree with each call that was left out: it does what they say, or they do not
// apply to it.
bool DynamicProgram::find_laws_of_some() {
  // With fewer calls, chance alone puts all of one of these many selections on a line.
  constexpr size_t kMinCalls = 5;
  std::set<std::vector<size_t>> tried;
  for (size_t d = 0; d < calls_[0].size(); ++d)
    for (int64_t parts = 2; parts <= kMaxParts; ++parts)
      for (int64_t rest = 0; rest < parts; ++rest) {
        selection_ = {d, parts, rest};
        std::vector<size_t> some;
        for (size_t i = 0; i < calls_.size(); ++i)
          if (selection_.has(calls_[i])) some.push_back(i);
        if (some.size() < kMinCalls || some.size() == calls_.size()) continue;
        if (!tried.insert(some).second || find_laws_of(some) != Found::laws) continue;
        size_t i = 0;
        while (i < calls_.size() && agrees(i)) ++i;
        if (i == calls_.size()) return true;
      }
  return false;
}

DynamicProgram::Found DynamicProgram::find_laws_of(std::span<const size_t> calls) {
  integers_.clear();
  scalars_.clear();
  step_ = selection_.parts;
  std::vector<Sizes> sizes;
  for (const size_t call : calls) sizes.push_back(calls_[call]);
  symbols_ = SizeSymbols(std::move(sizes));
  why_ = symbols_.count() <= SizeSymbols::kMaxSymbols
             ? kMoreSizes
             : fmt::format("sizes differ in more than {} ways", SizeSymbols::kMaxSymbols);
  if (!symbols_.enough()) return Found::too_little;
  std::vector<IntegerAt> integers(alike_integers_.first.size());
  std::vector<ScalarAt> scalars(alike_scalars_.first.size());
  for (size_t g = 0; g < integers.size(); ++g)
    if (const Found found = find_law_of_integer(calls, alike_integers_.first[g], integers[g]);
        found != Found::laws)
      return found;
  for (size_t g = 0; g < scalars.size(); ++g)
    if (const Found found = find_law_of_scalar(calls, alike_scalars_.first[g], scalars[g]);
        found != Found::laws)
      return found;
  for (auto& found : integers) step_ = std::max(step_, found.law.divisor);
  take_laws(integers, scalars);
  why_.clear();
  return Found::laws;
}

// Keeps those by which a number is not that of the first call.
void DynamicProgram::take_laws(std::span<const IntegerAt> integers,
                               std::span<const ScalarAt> scalars) {
  for (size_t at = 0; at < alike_integers_.group.size(); ++at) {
    const IntegerAt& found = integers[alike_integers_.group[at]];
    if (found.differs) integers_.push_back({at, found.law, true});
  }
  for (size_t at = 0; at < alike_scalars_.group.size(); ++at) {
    ScalarAt found = scalars[alike_scalars_.group[at]];
    found.at = at;
    if (found.differs) scalars_.push_back(found);
  }
}

DynamicProgram::Found DynamicProgram::find_law_of_integer(std::span<const size_t> calls, size_t at,
                                                          IntegerAt& found) {
  std::vector<int64_t> values;
  for (const size_t call : calls) values.push_back(numbers_[call].integers[at]);
  if (std::all_of(values.begin(), values.end(), [](int64_t v) { return v == kAnyNumber; }))
    return Found::laws;
  const auto known = symbols_.find(values, found.law);
  if (known == SizeSymbols::Known::none) {
    // To find the owner takes as long as all laws, and nobody reads why a selection has none.
    if (selection_.parts == 1)
      why_ = owner_of(at) +
             " has a size, or a place in memory, that does not follow from sizes of arguments";
    return Found::none;
  }
  if (known != SizeSymbols::Known::one) return Found::too_little;
  found.differs = found.law.monomial != kConstant || numbers_[0].integers[at] != found.law.base;
  return Found::laws;
}

// Nothing but its bits says whether a number is whole: whole ones of less than 53 bits are no
// normal doubles.
DynamicProgram::Found DynamicProgram::find_law_of_scalar(std::span<const size_t> calls, size_t at,
                                                         ScalarAt& found) {
  std::vector<int64_t> whole;
  std::vector<double> real;
  for (const size_t call : calls) {
    const Scalar& number = numbers_[call].scalars[at];
    whole.push_back(number.value.i);
    real.push_back(number.value.f);
    found.is_real = found.is_real && std::isnormal(real.back());
  }
  const auto known =
      found.is_real ? symbols_.find(real, found.real) : symbols_.find(whole, found.integer);
  if (known == SizeSymbols::Known::none) {
    why_ = "a number that an operator is given does not follow from sizes of arguments";
    return Found::none;
  }
  if (known != SizeSymbols::Known::one) return Found::too_little;
  const bool is_constant = found.real.monomial == kConstant && found.integer.monomial == kConstant;
  found.differs = !is_constant || numbers_[0].scalars[at].value.i != whole[0];
  return Found::laws;
}

// Names, for messages, the operator to which the number belongs.
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
