// How a compiled function finds programs for other sizes than it was recorded with.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/compiled_state.h>

namespace tenon {

namespace graph {

bool KnownDynamic::is_far(const Sizes& sizes) const {
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] / 2 > largest[i] || sizes[i] < smallest[i] / 2) return true;
  return false;
}

void KnownDynamic::note_seen(const Sizes& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    smallest[i] = std::min(smallest[i], sizes[i]);
    largest[i] = std::max(largest[i], sizes[i]);
  }
}

bool KnownDynamic::may_derive(const Sizes& sizes, std::span<const Tensor* const> arguments,
                              const recording::World& now) const {
  return calls.is_ready() && calls.knows(sizes) && derived < next_look && !is_far(sizes) &&
         is_right_in(now) && signature.fits(arguments);
}

}  // namespace graph

namespace detail {

using namespace graph;

void CompiledCalls::State::require_dimensions(std::span<const Tensor* const> arguments) const {
  if (!sizes.empty()) return;
  std::vector<std::string> shapes;
  for (auto* argument : arguments)
    shapes.push_back(argument->defined() ? fmt::format("{}", argument->shape()) : "undefined");
  for (const int64_t d : options.dynamic) {
    const auto has = [d](const Tensor* argument) {
      if (!argument->defined()) return false;
      return d < argument->dim() && d >= -argument->dim();
    };
    if (std::none_of(arguments.begin(), arguments.end(), has))
      throw IndexError(fmt::format(
          "tenon::compile: no argument of the function has the dimension {} of "
          "CompileOptions::dynamic, but they are of shapes ({}): name dimensions whose sizes "
          "differ from call to call, such as 0 for batches",
          d, fmt::join(shapes, ", ")));
  }
}

std::optional<Sizes> CompiledCalls::State::sizes_of(
    std::span<const Tensor* const> arguments) const {
  return sizes.empty() ? dynamic_sizes(arguments, options.dynamic)
                       : std::optional(Sizes(sizes.begin(), sizes.end()));
}

DynamicSignature CompiledCalls::State::dynamic_signature_of(
    std::span<const Tensor* const> arguments) const {
  return {signature_of(arguments, sizes), options.dynamic, !sizes.empty()};
}

KindOfCall* CompiledCalls::State::oldest(bool derived, size_t most) {
  KindOfCall* last = nullptr;
  size_t count = 0;
  for (auto& kind : kinds)
    if (kind.derived == derived) last = &kind, ++count;
  return count >= most ? last : nullptr;
}

void CompiledCalls::State::forget(const KindOfCall& kind) {
  kinds.remove_if([&](const KindOfCall& other) { return &other == &kind; });
}

bool CompiledCalls::State::may_derive(std::span<const Tensor* const> arguments) const {
  if (dynamics.empty()) return false;
  const auto of_call = sizes_of(arguments);
  if (!of_call) return false;
  const recording::World now = recording::world();
  return std::any_of(dynamics.begin(), dynamics.end(), [&](const KnownDynamic& known) {
    return known.may_derive(*of_call, arguments, now);
  });
}

bool CompiledCalls::State::is_look_due(std::span<const Tensor* const> arguments) const {
  if (dynamics.empty()) return false;
  const auto of_call = sizes_of(arguments);
  if (!of_call) return false;
  const recording::World now = recording::world();
  return std::any_of(dynamics.begin(), dynamics.end(), [&](const KnownDynamic& known) {
    return known.calls.is_ready() && known.is_right_in(now) && known.signature.fits(arguments) &&
           (known.derived >= known.next_look || known.is_far(*of_call));
  });
}

bool CompiledCalls::State::derive(KindOfCall& kind, std::span<const Tensor* const> arguments) {
  if (kind.asked || !kind.programs.empty()) return false;
  const auto of_call = sizes_of(arguments);
  if (dynamics.empty() || !of_call) return false;
  const recording::World now = recording::world();
  const bool derived = kind.derived;
  for (auto& known : dynamics) {
    if (!known.may_derive(*of_call, arguments, now)) continue;
    kind.asked = true;
    kind.derived = false;
    auto call = known.calls.derive(arguments, *of_call, known.fault);
    if (!call) continue;
    auto program = graph::Program::make(std::move(call->trace), std::move(call->wiring),
                                        options.passes, known.fault, &known.arenas);
    if (!program) continue;
    ++known.derived;
    ++this->derived;
    kind.derived = derived;
    kind.candidates.clear();
    kind.programs.push_front(
        {std::move(program), std::move(call->history), {now}, kFirstLook, true});
    return true;
  }
  return false;
}

// What a function does differs by size in a way that no law tells. Nothing that was derived counts
// any more; the second time, nothing is derived from then on.
void CompiledCalls::State::refute_dynamics() {
  dynamics.clear();
  ++refuted;
  for (auto& kind : kinds) {
    std::erase_if(kind.programs, [](const KnownProgram& known) { return known.derived; });
    kind.derived = false;
  }
}

// One that is ready is compared, and the others take the call in if it differs in sizes alone.
void CompiledCalls::State::learn_sizes(std::span<const Tensor* const> arguments,
                                       const RecordedCall& call, const recording::World& before) {
  constexpr size_t kMost = 4, kMostCalls = 16;
  constexpr int kMostRefuted = 2;
  // The second size that would follow from the others shows whether it does.
  constexpr uint64_t kFirstLookOfAll = 1;
  if (!call.trace.refusal.empty() || refuted == kMostRefuted) return;
  const auto of_call = sizes_of(arguments);
  if (!of_call) return;
  for (auto known = dynamics.begin(); known != dynamics.end(); ++known) {
    if (!known->signature.fits(arguments)) continue;
    const bool is_ready = known->calls.is_ready() && known->calls.knows(*of_call);
    Match found;
    if (is_ready) {
      const auto expected = known->calls.derive(arguments, *of_call, known->fault);
      if (!expected) continue;  // such a call is of another kind, which may have laws of its own
      found = with_history(match(expected->trace, &expected->wiring, call.trace),
                           expected->history.get(), call.history.get());
    } else {
      const auto& seen = known->calls.sizes();
      if (seen.size() == kMostCalls || std::find(seen.begin(), seen.end(), *of_call) != seen.end())
        return;
      found.difference = known->calls.add(call.trace, arguments, *of_call, call.history.get());
    }
    dynamic_note = found.difference;
    if (found.difference.empty()) {
      if (!is_ready) dynamic_note = known->calls.why();
      if (call.history) call.history->join(*known->calls.history(), *of_call);
      note_right_in(known->worlds, recording::world());
      known->note_seen(*of_call);
      if (known->derived >= known->next_look) known->next_look = look_after(known->next_look);
      dynamics.splice(dynamics.begin(), dynamics, known);
      return;
    }
    if (!is_ready || !known->is_right_in(before)) continue;
    refute_dynamics();
    require_same_number(found, false);
    if (refuted == kMostRefuted) return;
    break;
  }
  if (dynamics.size() == kMost) {
    const auto last = std::find_if(dynamics.rbegin(), dynamics.rend(),
                                   [](const KnownDynamic& d) { return !d.calls.is_ready(); });
    dynamics.erase(last == dynamics.rend() ? std::prev(dynamics.end()) : std::prev(last.base()));
  }
  dynamics.push_front({dynamic_signature_of(arguments),
                       DynamicProgram(call.trace, arguments, *of_call, call.history.get()),
                       {recording::world()},
                       *of_call,
                       *of_call,
                       kFirstLookOfAll});
  if (call.history) call.history->join(*dynamics.front().calls.history(), *of_call);
}

}  // namespace detail
}  // namespace tenon
