// What a compiled function remembers (core/graph/compile.cpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pthread.h>

#include <tenon/core/autocast.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/dynamic.h>
#include <tenon/core/graph/history.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/graph/timing.h>

namespace tenon {
namespace graph {

struct ArgumentKind {
  bool defined = false;
  DType dtype = DType::f32;
  Device device;
  Shape shape;
  Strides strides;
  bool grad = false;
};

// What a call must have in common with the recorded one before its program is considered.
struct Signature {
  bool grad = true;                         // gradients are recorded
  bool guarded = false;                     // a DeviceGuard is active
  Device device;                            // the default one
  std::vector<Autocast::Setting> autocast;  // the innermost guard first
  std::vector<ArgumentKind> tensors;
  Sizes sizes;  // further sizes on which the function depends
  bool fits(std::span<const Tensor* const> arguments, std::span<const int64_t> sizes) const;
  // Whether the guards, the default device and the number of tensors are the same.
  bool fits_around(size_t count) const;
};
Signature signature_of(std::span<const Tensor* const> arguments, std::span<const int64_t> sizes);

// As Signature, but without the sizes of the dimensions that CompileOptions::dynamic lists, or of
// all dimensions, and without the strides that follow from these sizes.
struct DynamicSignature {
  Signature of_one;
  std::span<const int64_t> dimensions;
  bool all_dimensions = false;
  bool fits(std::span<const Tensor* const> arguments) const;
};
// Returns those sizes of the arguments, one after the other. Returns nothing if there are none, or
// if one of them is 0 or 1: operators often do something else for these.
std::optional<Sizes> dynamic_sizes(std::span<const Tensor* const> arguments,
                                   std::span<const int64_t> dimensions);

struct RecordedCall {
  Trace trace;
  std::shared_ptr<History> history;  // null if no backward pass goes through the results
};
// What two recordings differ in, or their histories if nothing else does.
Match with_history(Match found, const History* earlier, History* now);

// A function keeps derived programs for at least this many sizes.
constexpr size_t kMaxDerived = 64;

// A program is compared with its function after kFirstLook replays, then after four times as many,
// and in the end after every kMaxUnlooked: the function may behave differently by then for a
// reason that is not reported. A comparison costs as much as a few calls of the function.
constexpr uint64_t kFirstLook = 16, kMaxUnlooked = 1024;
constexpr uint64_t look_after(uint64_t look) { return look + std::min(3 * look, kMaxUnlooked); }

// Notes that something is right in a world, and forgets those that never come back, and the oldest.
void note_right_in(std::vector<recording::World>& worlds, const recording::World& world);

struct KnownProgram {
  std::unique_ptr<Program> program;
  std::shared_ptr<History> history;
  std::vector<recording::World> worlds;  // in which it is known to be right, the last one first
  uint64_t next_look;    // how many replays there are before it is compared with the function
  bool derived = false;  // from calls of other sizes
  Timing timing = {};

  bool is_right_in(const recording::World& world) const {
    return std::find(worlds.begin(), worlds.end(), world) != worlds.end();
  }
  // Forgets those that never come back, and the oldest.
  void note_right_in(const recording::World& world) { graph::note_right_in(worlds, world); }
};

// The sizes of calls that did what laws say.
class SizesSeen {
 public:
  explicit SizesSeen(std::vector<Sizes> calls);
  void note(const Sizes& sizes);
  bool has(const Sizes& sizes) const {
    return std::find(calls_.begin(), calls_.end(), sizes) != calls_.end();
  }
  // Whether the laws can be trusted for these sizes, given the sizes with which they were compared.
  // `step` is the largest number by which a law divides.
  bool tell(const Sizes& sizes, int64_t step) const;

 private:
  static constexpr size_t kMax = 64;
  struct OfOne {
    int64_t smallest, largest, apart = 0;  // all are whole numbers of `apart` away from each other
  };
  void note_range(const Sizes& sizes);
  std::vector<Sizes> calls_;  // the last of those with which laws were compared
  std::vector<OfOne> seen_;
};

// The program for all sizes, and the worlds in which it is known to be right.
struct KnownDynamic {
  DynamicSignature signature;
  DynamicProgram calls;
  std::vector<recording::World> worlds;
  SizesSeen seen;
  uint64_t looks = 0;            // how many calls it was compared with since its laws were found
  uint64_t next_look = 0;        // how many programs are derived before a call is compared with it
  uint64_t derived = 0;          // how many programs there were, since its laws were found
  uint64_t fruitless_looks = 0;  // in a row, at calls of which the laws say nothing
  std::string fault = {};        // why the last program could not be derived
  SharedArenas arenas = {};

  // Whether the next call of these sizes is to be compared with it before it is trusted with them.
  bool is_look_due(const Sizes& sizes) const {
    if (seen.has(sizes)) return false;
    return derived >= next_look || !seen.tell(sizes, calls.step());
  }
  // Notes that a call did what the laws say.
  void note_right(const Sizes& sizes);
  // Begins again with laws that have just been found.
  void begin_again();
  // Whether its laws say something of a call with these arguments.
  bool covers(const Sizes& sizes, std::span<const Tensor* const> arguments,
              const recording::World& now) const;
  // Whether a program for these arguments may be derived, without a look at the call first.
  bool may_derive(const Sizes& sizes, std::span<const Tensor* const> arguments,
                  const recording::World& now) const {
    return covers(sizes, arguments, now) && !is_look_due(sizes);
  }
  bool is_right_in(const recording::World& world) const {
    return std::find(worlds.begin(), worlds.end(), world) != worlds.end();
  }
};

// A call with which no program agreed, and the world after it.
struct Candidate {
  RecordedCall call;
  recording::World world;
};

// The calls with arguments of one signature.
struct KindOfCall {
  Signature signature;
  std::list<KnownProgram> programs;  // such as one for training and one for evaluation
  std::list<Candidate> candidates;   // the last one first; at most three
  // Recordings since a program was made, in each of the worlds of the last ones.
  struct Tries {
    recording::World world;
    int count = 0;
  };
  std::vector<Tries> tries;
  std::string note;      // why there is none, or why the last one did not fit
  bool derived = false;  // there was a program for all sizes when it came
  bool asked = false;    // such a program was asked for what it does

  uint64_t replays() const;
  // Returns the program of this world with which the call that comes is compared; null if there is
  // none.
  const Program* looked_at(const recording::World& world) const {
    for (auto& known : programs)
      if (known.is_right_in(world) && known.program->replays >= known.next_look)
        return known.program.get();
    return nullptr;
  }
  int& tries_in(const recording::World& world);
};

// Which kinds of arguments stay where there are more than a function may keep. If all of them took
// turns, each would go before its replays have paid for its recordings, and every call would cost
// more than the function itself. Those that are here stay then for a while, and the others run as
// they are, unless one comes again and again.
class Turns {
 public:
  // Returns whether `oldest` goes, so that another kind finds room among `most`.
  bool goes(const KindOfCall& oldest, size_t most);
  // Returns whether a kind that finds no room has come so often in a row that it gets some. To look
  // at it costs something, so that not each of those that take turns is looked at.
  bool stays(std::span<const Tensor* const> arguments, std::span<const int64_t> sizes);
  void another_came() { seen_ = 0; }
  uint64_t turned_away() const { return turned_away_; }

 private:
  static constexpr uint64_t kFirstWait = 64, kLongestWait = 65536;  // calls
  static constexpr size_t kFewestUnpaid = 8;
  size_t unpaid_ = 0;  // kinds that went one after the other, each before it had paid
  uint64_t waits_ = 0, next_wait_ = kFirstWait, turned_away_ = 0;
  Signature last_;  // that found no room, and how often in a row; 0: none is looked at
  uint64_t seen_ = 0, skips_ = 0;
};

}  // namespace graph

namespace detail {

struct CompiledCalls::State {
  explicit State(const CompileOptions& options) : options(options) {}

  // Throws a ValueError if this thread is in a call, which goes on with what there is.
  std::unique_lock<ForkMutex> lock_outside(const char* to_do) const;
  void run_plainly(const CompiledBody& body, std::vector<Tensor>& results);
  // Returns the sizes of a call that may be others in the next; nothing if there are none, or if
  // one of them is 0 or 1.
  std::optional<graph::Sizes> sizes_of(std::span<const Tensor* const> arguments) const;
  graph::DynamicSignature dynamic_signature_of(std::span<const Tensor* const> arguments) const;
  // Throws an IndexError for a dimension of CompileOptions::dynamic that no argument has.
  void require_dimensions(std::span<const Tensor* const> arguments) const;
  // Returns null if there is no room for these.
  graph::KindOfCall* kind_for(std::span<const Tensor* const> arguments);
  // Returns the kind that was used longest ago, of those whose programs were derived or of the
  // others; null if there are fewer than `most`.
  graph::KindOfCall* oldest(bool derived, size_t most);
  void forget(const graph::KindOfCall& kind);
  // Whether there is a program for all sizes by which that of a call could be derived, and which is
  // not to be compared with a call first.
  bool may_derive(std::span<const Tensor* const> arguments) const;
  // Returns whether a call of a new size is to be recorded, and compared with such a program, even
  // if others wait for that. It is not if several in a row were nothing that could be compared.
  bool takes_look(std::span<const Tensor* const> arguments);
  // Derives the program of a kind of arguments that has none, where that can be. Returns whether
  // there is one then.
  bool derive(graph::KindOfCall& kind, std::span<const Tensor* const> arguments);
  // Takes a recorded call as one of several sizes. Throws as require_same_number().
  void learn_sizes(std::span<const Tensor* const> arguments, const graph::RecordedCall& call,
                   const recording::World& before);
  // Takes a call among those that tell, and forgets what followed from the others. Returns false if
  // it differs from them in more than sizes, or if there are enough of them.
  bool learn_again(graph::KnownDynamic& known, std::span<const Tensor* const> arguments,
                   const graph::RecordedCall& call, const graph::Sizes& of_call);
  void refute_dynamics();
  void forget_derived();
  // Runs the program of this call, or the function in its place as long as the program is set
  // aside. Returns false if there is none.
  bool replay(graph::KindOfCall& kind, std::span<const Tensor* const> arguments,
              const CompiledBody& body, std::vector<Tensor>& results);
  void record(graph::KindOfCall& kind, std::span<const Tensor* const> arguments,
              const CompiledBody& body, std::vector<Tensor>& results);
  // `took`: the seconds of the call, if they were measured.
  void learn(graph::KindOfCall& kind, graph::RecordedCall call, const recording::World& before,
             std::optional<double> took);
  void compare(graph::KindOfCall& kind, graph::RecordedCall call, const recording::World& before);
  void make_program(graph::KindOfCall& kind, graph::RecordedCall call, graph::Wiring wiring);
  static void require_same_number(const graph::Match& found, bool something_changed);

  const CompileOptions options;
  mutable ForkMutex mutex{ForkOrder::calls};
  std::atomic<pthread_t> thread{0};         // that is in a call
  std::span<const int64_t> sizes;           // of that call, if it was given any
  std::list<graph::KindOfCall> kinds;       // the last used first
  std::list<graph::KnownDynamic> dynamics;  // the last found first
  std::string dynamic_note;                 // why a call was none of several sizes
  int refuted = 0;                          // how often one of them was found to be wrong
  graph::Turns turns, derived_turns;
  bool had_no_room = false;         // the last call
  std::string note;                 // why the last call was not even recorded
  bool checked_dimensions = false;  // of CompileOptions::dynamic
  // Programs that were made of recorded calls, and those that followed from calls of other sizes.
  uint64_t made = 0, derived = 0;
  uint64_t recorded_calls = 0, plain_calls = 0, dropped = 0;
};

}  // namespace detail
}  // namespace tenon
