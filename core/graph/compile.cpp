// When a compiled function is recorded, and when it is replayed.
#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/base/turns.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/error.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/compiled_state.h>
#include <tenon/core/graph/recorder.h>

namespace tenon {

using namespace graph;

namespace {

// After this many recordings that led to no program, calls with such arguments are no longer
// recorded, until a change is reported (recording::World).
constexpr int kMaxTries = 10;
// After this many replays, the time spent on recording has been recovered.
constexpr uint64_t kPaid = 16;

}  // namespace

namespace graph {

uint64_t KindOfCall::replays() const {
  uint64_t sum = 0;
  for (auto& known : programs) sum += known.program->replays;
  return sum;
}

int& KindOfCall::tries_in(const recording::World& world) {
  constexpr size_t kMax = 8;
  const auto found =
      std::find_if(tries.begin(), tries.end(), [&](const Tries& t) { return t.world == world; });
  if (found != tries.end()) return found->count;
  if (tries.size() == kMax) tries.pop_back();
  return tries.insert(tries.begin(), {world})->count;
}

bool Turns::goes(const KindOfCall& oldest, size_t most) {
  if (waits_ == 0 && unpaid_ >= std::max(most, kFewestUnpaid)) {
    unpaid_ = 0;
    waits_ = next_wait_;
    next_wait_ = std::min(4 * next_wait_, kLongestWait);
  }
  if (waits_ > 0) {
    --waits_;
    ++turned_away_;
    return false;
  }
  unpaid_ = oldest.replays() < kPaid ? unpaid_ + 1 : 0;
  return true;
}

bool Turns::stays(std::span<const Tensor* const> arguments, std::span<const int64_t> sizes) {
  if (seen_ > 0 && last_.fits(arguments, sizes)) {
    if (++seen_ < kPaid) return false;
    --turned_away_;
    waits_ = unpaid_ = seen_ = 0;
    next_wait_ = kFirstWait;
    return true;
  }
  seen_ = 0;
  if (skips_ > 0) {
    --skips_;
    return false;
  }
  last_ = signature_of(arguments, sizes);
  seen_ = 1;
  skips_ = kPaid;
  return false;
}

Match with_history(Match found, const History* earlier, History* now) {
  if (!found.difference.empty() || (!earlier && !now)) return found;
  Match of_history;
  if (!earlier || !now)
    of_history.difference = "a result had a history in one call and not in the other";
  else
    of_history = earlier->compare(*now);
  found.difference = std::move(of_history.difference);
  found.number_differs = of_history.number_differs;
  return found;
}

}  // namespace graph

namespace {

// Under guards of Autocast, a call that is recorded shares no converted parameters with what is
// around it: a replay will find none there, and leave none.
class OwnCasts {
 public:
  OwnCasts() {
    if (!innermost_autocast) return;
    const AutocastState state;
    { const AutocastState::Guard forgets(state); }
    guard_.emplace(state);
  }

 private:
  std::optional<AutocastState::Guard> guard_;
};

// Returns why a call is not even recorded; null if it may be.
const char* reason_not_to_record(std::span<const Tensor* const> arguments) {
  if (check_settings().on) return "TENON_CHECK is set";
  if (grad_settings().detects_anomaly) return "anomalies are being looked for";
  for (auto* argument : arguments) {
    const TensorImpl* t = argument->impl().get();
    if (!t || !t->autograd) continue;
    if (t->autograd->replicas) return "an argument has replicas on other devices";
  }
  return nullptr;
}

}  // namespace

namespace detail {

std::unique_lock<ForkMutex> CompiledCalls::State::lock_outside(const char* to_do) const {
  if (thread.load(std::memory_order_relaxed) == pthread_self())
    throw ValueError(fmt::format("the compiled function is running; {} it outside", to_do));
  return std::unique_lock(mutex);
}

// Runs the function itself.
void CompiledCalls::State::run_plainly(const CompiledBody& body, std::vector<Tensor>& results) {
  body.call(body.self, results);
  ++plain_calls;
}

KindOfCall* CompiledCalls::State::kind_for(std::span<const Tensor* const> arguments) {
  for (auto kind = kinds.begin(); kind != kinds.end(); ++kind)
    if (kind->signature.fits(arguments, sizes)) {
      turns.another_came();
      derived_turns.another_came();
      kinds.splice(kinds.begin(), kinds, kind);
      return &kinds.front();
    }
  const bool derived = may_derive(arguments);
  const size_t most = std::max<size_t>(options.max_programs, derived ? kMaxDerived : 1);
  Turns& turns_of_these = derived ? derived_turns : turns;
  KindOfCall* old = oldest(derived, most);
  const bool waits_for_none = old && !derived && takes_look(arguments);
  for (; old; old = oldest(derived, most)) {
    if (!waits_for_none && !turns_of_these.goes(*old, most) &&
        !turns_of_these.stays(arguments, sizes))
      return nullptr;
    forget(*old);
    dropped += !derived;
  }
  kinds.emplace_front().signature = signature_of(arguments, sizes);
  kinds.front().derived = derived;
  return &kinds.front();
}

namespace {

void run_program(KnownProgram& known, std::span<const Tensor* const> arguments,
                 std::vector<Tensor>& results) {
  std::optional<StopWatch> watch;
  if (known.timing.awaits_replay()) watch.emplace(known.program->devices());
  known.program->run(arguments, results);
  if (watch) known.timing.note_replay(watch->stop());
  if (known.history) known.history->give(arguments, results);
}

}  // namespace

bool CompiledCalls::State::replay(KindOfCall& kind, std::span<const Tensor* const> arguments,
                                  const CompiledBody& body, std::vector<Tensor>& results) {
  const recording::World now = recording::world();
  for (auto known = kind.programs.begin(); known != kind.programs.end(); ++known) {
    if (!known->is_right_in(now) || known->program->replays >= known->next_look) continue;
    const char* why = known->program->obstacle(arguments);
    if (!why && known->history) why = known->history->obstacle(arguments);
    if (why) {
      kind.note = why;
      continue;
    }
    if (known != kind.programs.begin())
      kind.programs.splice(kind.programs.begin(), kind.programs, known);
    KnownProgram& front = kind.programs.front();
    if (front.timing.aside()) {
      if (front.timing.pass()) front.next_look = front.program->replays;
      run_plainly(body, results);
    } else {
      run_program(front, arguments, results);
    }
    return true;
  }
  return false;
}

void CompiledCalls::State::record(KindOfCall& kind, std::span<const Tensor* const> arguments,
                                  const CompiledBody& body, std::vector<Tensor>& results) {
  const recording::World before = recording::world();
  Recorder& recorder = Recorder::instance();
  if (kind.tries_in(before) >= kMaxTries || !recorder.begin(arguments))
    return run_plainly(body, results);
  RecordedCall call;
  std::optional<double> took;
  try {
    std::optional<StopWatch> watch;
    if (const Program* program = options.measure ? kind.looked_at(before) : nullptr)
      watch.emplace(program->devices());
    call.history = begin_history(arguments, options);
    {
      const OwnCasts casts;
      body.call(body.self, results);
    }
    if (watch) took = watch->stop();
    if (!call.history->look(results)) call.history = nullptr;
    call.trace = recorder.end(results, call.history.get());
  } catch (...) {
    recorder.abandon();
    throw;
  }
  if (call.history) call.history->settle(call.trace);
  ++recorded_calls;
  learn_sizes(arguments, call, before);
  learn(kind, std::move(call), before, took);
}

// A number that differs is an error, unless something was changed that may be the reason.
void CompiledCalls::State::require_same_number(const Match& found, bool something_changed) {
  if (!(found.number_differs || found.content_differs) || something_changed) return;
  throw ValueError(fmt::format(
      "tenon::compile: {}. A program would always use one number: pass it as a tensor, as an "
      "argument or one from outside that is changed in place, or leave it out of the function",
      found.difference));
}

void CompiledCalls::State::learn(KindOfCall& kind, RecordedCall call,
                                 const recording::World& before, std::optional<double> took) {
  ++kind.tries_in(before);
  if (!call.trace.refusal.empty()) {
    kind.note = call.trace.refusal;
    return;
  }
  for (auto known = kind.programs.begin(); known != kind.programs.end();) {
    const Match found =
        with_history(known->program->compare(call.trace), known->history.get(), call.history.get());
    if (found.difference.empty() && !known->program->lies_as(call.trace)) {
      ++known;
      continue;
    }
    if (found.difference.empty()) {
      known->note_right_in(recording::world());
      if (known->program->replays >= known->next_look) {
        known->next_look = look_after(known->next_look);
        known->timing.note_look(took);
      }
      kind.tries.clear();
      known->program->take_host_work(std::move(call.trace));
      kind.programs.splice(kind.programs.begin(), kind.programs, known);
      return;
    }
    // Other programs belong to other modes, such as evaluation, and the function may return to
    // them.
    const bool same_world = known->is_right_in(before);
    const bool comes_back = !same_world && known->worlds.front().changes == before.changes;
    const bool looked = !comes_back && known->program->replays >= known->next_look;
    if (comes_back || (!looked && !found.number_differs && !found.content_differs)) {
      ++known;
      continue;
    }
    known = kind.programs.erase(known);
    kind.note = found.difference;
    if (looked) require_same_number(found, !same_world);
  }
  compare(kind, std::move(call), before);
}

// Compares the call with recorded calls that have no program yet: in the same world, from the last
// one back to the first that are_told_apart() does not distinguish from it; if there is none of the
// same world, with the last one.
void CompiledCalls::State::compare(KindOfCall& kind, RecordedCall call,
                                   const recording::World& before) {
  constexpr size_t kMaxCandidates = 3;
  auto& all = kind.candidates;
  const auto of_this_world = [&](const Candidate& c) { return c.world == before; };
  const bool changed = std::none_of(all.begin(), all.end(), of_this_world);
  std::optional<Match> newest;
  for (auto earlier = all.begin(); earlier != all.end(); ++earlier) {
    if (!changed && !of_this_world(*earlier)) continue;
    Match found = with_history(match(earlier->call.trace, nullptr, call.trace),
                               earlier->call.history.get(), call.history.get());
    if (found.difference.empty()) {
      if (call.history) call.history->join(*earlier->call.history, earlier->call.history->sizes());
      all.erase(earlier);
      return make_program(kind, std::move(call), std::move(found.wiring));
    }
    if (!newest) newest = std::move(found);
    if (changed || !are_told_apart(earlier->call.trace, call.trace)) {
      if (!changed) all.erase(earlier);
      break;
    }
  }
  if (newest) kind.note = newest->difference;
  all.push_front({std::move(call), recording::world()});
  if (all.size() > kMaxCandidates) all.pop_back();
  if (newest && newest->number_differs) require_same_number(*newest, changed);
}

void CompiledCalls::State::make_program(KindOfCall& kind, RecordedCall call, Wiring wiring) {
  constexpr size_t kMaxOfAKind = 4;
  std::string why;
  auto program =
      graph::Program::make(std::move(call.trace), std::move(wiring), options.passes, why);
  if (!program) {
    kind.note = why;
    return;
  }
  kind.tries.clear();
  kind.note.clear();
  kind.programs.push_front(
      {std::move(program), std::move(call.history), {recording::world()}, kFirstLook});
  if (kind.programs.size() > kMaxOfAKind) kind.programs.pop_back();
  ++made;
}

CompiledCalls::CompiledCalls(const CompileOptions& options) : state_(new State(options)) {
  constexpr auto most = static_cast<int64_t>(Shape::max_rank);
  for (const int64_t d : options.dynamic)
    if (d < -most || d >= most)
      throw IndexError(fmt::format(
          "tenon::compile: {} in CompileOptions::dynamic is no dimension of a tensor, which has {} "
          "at most",
          d, most));
}
CompiledCalls::CompiledCalls(CompiledCalls&&) noexcept = default;
CompiledCalls& CompiledCalls::operator=(CompiledCalls&&) noexcept = default;
CompiledCalls::~CompiledCalls() = default;

CompiledCalls::State& CompiledCalls::state() const {
  if (!state_) throw ValueError("tenon::compile: this object was moved from");
  return *state_;
}

void CompiledCalls::call(std::span<const Tensor* const> arguments, const CompiledBody& body,
                         std::vector<Tensor>& results, std::span<const int64_t> sizes) {
  State& state = this->state();
  // Inside another recorded function, this one is recorded as a part of it. A call of itself, and a
  // call on a thread that runs in turns, run the plain function: the function may give the turn to
  // a thread that would then wait for the lock.
  if (recording::here() || state.thread.load(std::memory_order_relaxed) == pthread_self() ||
      part_in_turns())
    return body.call(body.self, results);
  std::lock_guard lock(state.mutex);
  state.thread.store(pthread_self(), std::memory_order_relaxed);
  state.sizes = sizes;
  struct Leave {
    std::atomic<pthread_t>& thread;
    ~Leave() { thread.store(0, std::memory_order_relaxed); }
  } const leave{state.thread};
  if (auto* why = reason_not_to_record(arguments)) {
    state.note = why;
    state.had_no_room = false;
    return state.run_plainly(body, results);
  }
  if (!state.checked_dimensions) state.require_dimensions(arguments);
  state.checked_dimensions = true;
  KindOfCall* const kind = state.kind_for(arguments);
  state.had_no_room = !kind;
  if (!kind) return state.run_plainly(body, results);
  if (state.replay(*kind, arguments, body, results)) return;
  if (state.derive(*kind, arguments) && state.replay(*kind, arguments, body, results)) return;
  state.record(*kind, arguments, body, results);
}

void CompiledCalls::reset() {
  State& state = this->state();
  const auto lock = state.lock_outside("reset");
  state.kinds.clear();
  state.dynamics.clear();
  state.refuted = 0;
  state.dynamic_note.clear();
  state.turns = state.derived_turns = {};
  state.had_no_room = false;
}

}  // namespace detail
}  // namespace tenon
