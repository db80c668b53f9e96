// How a compiled function finds programs for other sizes than it was recorded with.
#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/compiled_state.h>

namespace tenon {

namespace graph {

namespace {

// The first kFirstLooks sizes that follow from laws are recorded and compared; after that, one size
// is compared when kFirstGap programs have been derived.
constexpr uint64_t kFirstLooks = 2, kFirstGap = 4;
// How many calls in a row may be recorded for a comparison although the laws say nothing of them.
constexpr uint64_t kMaxFruitlessLooks = 4;
// The largest number of calls from which laws are found.
constexpr size_t kMaxCalls = 16;

// Returns how many consecutive sizes are enough to tell a fraction with the denominator `step` from
// one with another denominator up to kMaxParts: rounded down, 2/3 and 5/7 of a size are the same
// for nearly 21 sizes.
int64_t least_range(int64_t step) {
  constexpr int64_t kMaxSteps = int64_t{1} << 31;  // so that it stays in int64
  step = std::min(step, kMaxSteps);
  return step * std::max(kMaxParts, step + 1);
}

}  // namespace

SizesSeen::SizesSeen(std::vector<Sizes> calls) : calls_(std::move(calls)) {
  for (const int64_t size : calls_[0]) seen_.push_back({size, size});
  for (auto& call : calls_) note_range(call);
}

void SizesSeen::note_range(const Sizes& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    OfOne& seen = seen_[i];
    seen.apart = std::gcd(seen.apart, sizes[i] - seen.smallest);
    seen.smallest = std::min(seen.smallest, sizes[i]);
    seen.largest = std::max(seen.largest, sizes[i]);
  }
}

void SizesSeen::note(const Sizes& sizes) {
  if (has(sizes)) return;
  if (calls_.size() == kMax) calls_.erase(calls_.begin());
  calls_.push_back(sizes);
  note_range(sizes);
}

// A size is predictable if it lies between sizes that were compared, or not far outside of many of
// them. As long as these lie close together, n / 16 looks like a constant, or like n / 15. What a
// function does only for odd sizes, or for sizes that are no multiples of 8, shows only at these.
bool SizesSeen::tell(const Sizes& sizes, int64_t step) const {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const OfOne& seen = seen_[i];
    const int64_t size = sizes[i], range = seen.largest - seen.smallest,
                  outside = std::max(size - seen.largest, seen.smallest - size);
    if (range == 0 ? size != seen.smallest : (size - seen.smallest) % seen.apart != 0) return false;
    if (outside <= 0) continue;
    if (range < least_range(std::max(step, std::min(seen.apart, kMaxParts)))) return false;
    if (size / 2 > seen.largest || size < seen.smallest / 2) return false;
  }
  return true;
}

void KnownDynamic::note_right(const Sizes& sizes) {
  fruitless_looks = 0;
  if (seen.has(sizes)) return;
  seen.note(sizes);
  if (++looks < kFirstLooks || derived < next_look) return;
  next_look = derived + std::clamp<uint64_t>(3 * derived, kFirstGap, kMaxUnlooked);
}

void KnownDynamic::begin_again() {
  seen = SizesSeen(calls.telling_sizes());
  looks = next_look = derived = fruitless_looks = 0;
}

bool KnownDynamic::covers(const Sizes& sizes, std::span<const Tensor* const> arguments,
                          const recording::World& now) const {
  return calls.is_ready() && calls.knows(sizes) && is_right_in(now) && signature.fits(arguments);
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

bool CompiledCalls::State::takes_look(std::span<const Tensor* const> arguments) {
  const auto of_call = sizes_of(arguments);
  if (dynamics.empty() || !of_call) return false;
  const recording::World now = recording::world();
  bool looks = false;
  for (auto& known : dynamics) {
    if (known.fruitless_looks == kMaxFruitlessLooks || !known.covers(*of_call, arguments, now) ||
        !known.is_look_due(*of_call))
      continue;
    ++known.fruitless_looks;
    looks = true;
  }
  return looks;
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

// Drops all programs that were derived from calls of other sizes.
void CompiledCalls::State::forget_derived() {
  for (auto& kind : kinds) {
    std::erase_if(kind.programs, [](const KnownProgram& known) { return known.derived; });
    kind.derived = kind.asked = false;
  }
}

// The function depends on sizes in a way that no law describes. When this has happened twice, no
// more programs are derived.
void CompiledCalls::State::refute_dynamics() {
  dynamics.clear();
  ++refuted;
  forget_derived();
}

bool CompiledCalls::State::learn_again(KnownDynamic& known,
                                       std::span<const Tensor* const> arguments,
                                       const RecordedCall& call, const Sizes& of_call) {
  const auto& told = known.calls.sizes();
  if (told.size() == kMaxCalls || std::find(told.begin(), told.end(), of_call) != told.end() ||
      !known.calls.add(call.trace, arguments, of_call, call.history.get()).empty())
    return false;
  if (call.history) call.history->join(*known.calls.history(), of_call);
  forget_derived();
  known.begin_again();
  return true;
}

// A dynamic program that is ready is compared with the call. One that is not ready learns from the
// call if it differs from the earlier ones in nothing but sizes.
void CompiledCalls::State::learn_sizes(std::span<const Tensor* const> arguments,
                                       const RecordedCall& call, const recording::World& before) {
  constexpr size_t kMax = 4;
  constexpr int kMaxRefuted = 2;
  if (!call.trace.refusal.empty() || refuted == kMaxRefuted) return;
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
      if (seen.size() == kMaxCalls || std::find(seen.begin(), seen.end(), *of_call) != seen.end())
        return;
      found.difference = known->calls.add(call.trace, arguments, *of_call, call.history.get());
    }
    dynamic_note = found.difference;
    if (found.difference.empty()) {
      if (call.history) call.history->join(*known->calls.history(), *of_call);
      note_right_in(known->worlds, recording::world());
      if (is_ready) {
        known->note_right(*of_call);
      } else {
        dynamic_note = known->calls.why();
        known->begin_again();
      }
      dynamics.splice(dynamics.begin(), dynamics, known);
      return;
    }
    if (!is_ready || !known->is_right_in(before)) continue;
    const bool was_right = known->looks > 0;
    if (learn_again(*known, arguments, call, *of_call)) {
      dynamic_note = known->calls.why();
      if (was_right && !known->calls.is_ready()) require_same_number(found, false);
      return;
    }
    refute_dynamics();
    require_same_number(found, false);
    if (refuted == kMaxRefuted) return;
    break;
  }
  if (dynamics.size() == kMax) {
    const auto last = std::find_if(dynamics.rbegin(), dynamics.rend(),
                                   [](const KnownDynamic& d) { return !d.calls.is_ready(); });
    dynamics.erase(last == dynamics.rend() ? std::prev(dynamics.end()) : std::prev(last.base()));
  }
  dynamics.push_front({dynamic_signature_of(arguments),
                       DynamicProgram(call.trace, arguments, *of_call, call.history.get()),
                       {recording::world()},
                       SizesSeen(std::vector<Sizes>{*of_call})});
  if (call.history) call.history->join(*dynamics.front().calls.history(), *of_call);
}

}  // namespace detail
}  // namespace tenon
