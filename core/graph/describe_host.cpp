// The steps of optimizers in a program that is stored.
#include <cstring>
#include <sstream>

#include <fmt/format.h>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/graph/describe.h>

namespace tenon::graph {

namespace {

bool same_owner(const Part& a, const Part& b) {
  return !a.owner.owner_before(b.owner) && !b.owner.owner_before(a.owner);
}

// "adam, rmsprop, sgd", for the operators that say what their numbers are.
std::string steps_with_numbers() {
  std::set<std::string> names;
  for (const Op* op = all_ops(); op; op = op->next) {
    if (!op->numbers) continue;
    const std::string name = op->name;
    names.insert(name.substr(0, name.rfind("_step")));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> words_of(const char* text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

void HostPartDescription::refuse(const std::string& why) const {
  throw ValueError(fmt::format("{}: {}", part_.host_name ? part_.host_name : "the host", why));
}

HostPartDescription::HostPartDescription(const Trace& trace, const Part& part,
                                         SavedProgram& program)
    : trace_(trace), part_(part), program_(program) {
  if (!part.host_name || !part.host_numbers)
    refuse("it does something in the function that cannot be repeated without it");
  if (part.owner.expired())
    throw ValueError("an optimizer of the function does not exist any more");
  if (!trace.host.fault.empty()) refuse(trace.host.fault + "; call the function again first");
  size_t others = 0, number = 0;
  for (auto& other : trace.parts) {
    if (!other.again || &other == &part) continue;
    if (same_owner(part, other)) refuse("it takes two steps in one call of the function");
    ++others;
    number += &other < &part;
  }
  if (others) prefix_ = fmt::format("optimizer{}.", number);
  for (uint32_t n = part.first_host_node; n < part.end_host_node; ++n)
    if (const TraceNode& node = trace.host.nodes[n];
        node.num_scalars && node.plan->call.op->numbers)
      groups_.insert(now(target_of(node), "group"));
}

// Where a plan takes no tensor with gaps, it changes a copy, which is copied back: then the memory
// is that of which it is a copy. `end` is a node of the part, before which the value was made.
const Storage* HostPartDescription::memory_of(uint32_t at, uint32_t end) const {
  const HostPlans& host = trace_.host;
  if (host.values[at].held) return host.values[at].held.get();
  if (const uint32_t value = host.values[at].value; value != kAbsent)
    return trace_.values[value].held.get();
  while (end-- > part_.first_host_node) {
    const TraceNode& node = host.nodes[end];
    if (node.num_inputs != 1 || node.num_outputs != 1 ||
        std::string_view(node.plan->call.op->name) != "copy")
      continue;
    const Access &from = host.accesses[node.first_access], &to = (&from)[1];
    if (to.value == at) return from.value == kAbsent ? nullptr : memory_of(from.value, end);
  }
  return nullptr;
}

const Storage* HostPartDescription::target_of(const TraceNode& node, size_t output) const {
  const Access& access = trace_.host.accesses[node.first_access + node.num_inputs + output];
  if (access.value == kAbsent) return nullptr;
  return memory_of(access.value, static_cast<uint32_t>(&node - trace_.host.nodes.data()));
}

double HostPartDescription::now(const Storage* memory, std::string_view name) const {
  const auto number = memory ? part_.host_numbers(*memory, name) : std::nullopt;
  if (!number)
    refuse(
        fmt::format("it has no number \"{}\" for a tensor that its step changed when the "
                    "function was recorded, or several, as where parts of one tensor are "
                    "parameters of two groups or have taken different numbers of steps; call the "
                    "function again first",
                    name));
  return *number;
}

void HostPartDescription::require_own(const Storage* memory) const {
  if (memory && part_.host_numbers(*memory, "group")) return;
  refuse(
      "its step uses a tensor that is neither a parameter nor its state: a gradient that the "
      "function does not compute, or a state that was replaced since. Compute gradients inside "
      "the function, and call it again first");
}

// An option that is part of the plan, or that the program would keep, is the one of now.
void HostPartDescription::require_same_options(const TraceNode& node) const {
  const Storage* const target = target_of(node);
  for (auto& attr : node.plan->call.attrs.all()) {
    if (attr.kind != TN_ATTR_BOOL) continue;
    const auto option = part_.host_numbers(*target, attr.name);
    if (option && (*option != 0) != (attr.i != 0))
      refuse(
          fmt::format("its option {} was changed since the function was recorded; call reset(), "
                      "and the function again, first",
                      attr.name));
  }
  for (size_t i = 0; i < node.num_outputs; ++i)
    if (const Storage* other = target_of(node, i))
      for (const char* name : {"step", "group"})
        if (now(other, name) != now(target, name))
          refuse(
              "its parameters have taken different numbers of steps since the function was "
              "recorded; call the function again first");
}

uint32_t HostPartDescription::living(const std::string& name, bool counts, Scalar value) {
  auto& numbers = program_.numbers;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i].name == name) return static_cast<uint32_t>(i);
  numbers.push_back({name, counts, value});
  return static_cast<uint32_t>(numbers.size()) - 1;
}

void HostPartDescription::add_number(const TraceNode& node, SavedNode& saved, uint32_t at,
                                     const std::string& name) {
  const Storage* const target = target_of(node);
  Scalar& scalar = saved.scalars[at];
  const double group = now(target, "group"), step = now(target, "step");
  const std::string of_group =
      groups_.size() > 1 ? fmt::format(".{}", static_cast<int64_t>(group)) : "";
  if (name == "first") {
    if (scalar.value.i != 0)
      refuse("the recorded step was its first; call the function again first");
  } else if (name == "lr") {
    saved.living.push_back({at, living(prefix_ + "lr" + of_group, false, now(target, "lr"))});
  } else if (name == "step") {
    const Scalar next = Scalar::integer(static_cast<int64_t>(step) + 1);
    std::string own = prefix_ + "step" + of_group;
    // Parameters that a step left out may be behind.
    for (int other = 1; program_.numbers[living(own, true, next)].value.value.i != next.value.i;)
      own = fmt::format("{}step{}.after_{}.{}", prefix_, of_group, next.value.i, other++);
    saved.living.push_back({at, living(own, true, next)});
  } else {
    const double option = now(target, name);
    if (std::memcmp(&option, &scalar.value.f, sizeof option) != 0)
      refuse(
          fmt::format("its option {} was {} when the function was recorded, and is {} now; a "
                      "program keeps it. Call reset(), and the function again, first",
                      name, number_text(scalar.value.f), number_text(option)));
  }
}

void HostPartDescription::add_numbers(const TraceNode& node, SavedNode& saved) {
  const Op& op = *node.plan->call.op;
  if (op.draws) refuse("its step draws random numbers");
  if (node.num_scalars == 0) return;
  const auto names = op.numbers ? words_of(op.numbers) : std::vector<std::string>();
  if (names.size() != node.num_scalars || !target_of(node))
    refuse(
        fmt::format("the host computes numbers of its step (of {}), which a file cannot repeat. "
                    "Optimizers that can be saved take the steps of: {} (AdamW is one of adam)",
                    op.name, steps_with_numbers()));
  require_same_options(node);
  for (uint32_t i = 0; i < node.num_scalars; ++i) add_number(node, saved, i, names[i]);
}

}  // namespace tenon::graph
