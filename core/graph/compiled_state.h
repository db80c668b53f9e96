// What a compiled function remembers (core/graph/compile.cpp).
#pragma once

#include <algorithm>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <pthread.h>

#include <tenon/core/autocast.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/history.h>
#include <tenon/core/graph/program.h>

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

// What has to be the same for a program to be looked at.
struct Signature {
  bool grad = true;                         // gradients are recorded
  bool guarded = false;                     // a DeviceGuard is active
  Device device;                            // the default one
  std::vector<Autocast::Setting> autocast;  // the innermost guard first
  std::vector<ArgumentKind> tensors;
  bool fits(std::span<const Tensor* const> arguments) const;
};
Signature signature_of(std::span<const Tensor* const> arguments);

struct RecordedCall {
  Trace trace;
  std::shared_ptr<History> history;  // null if no backward pass goes through the results
};

struct KnownProgram {
  std::unique_ptr<Program> program;
  std::shared_ptr<History> history;
  std::vector<recording::World> worlds;  // in which it is known to be right, the last one first
  uint64_t next_look;  // how many replays there are before it is compared with the function

  bool is_right_in(const recording::World& world) const {
    return std::find(worlds.begin(), worlds.end(), world) != worlds.end();
  }
  // Forgets those that never come back, and the oldest.
  void note_right_in(const recording::World& world);
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
  std::string note;  // why there is none, or why the last one did not fit

  uint64_t replays() const;
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
  bool stays(std::span<const Tensor* const> arguments);
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
  // Returns null if there is no room for these.
  graph::KindOfCall* kind_for(std::span<const Tensor* const> arguments);
  bool replay(graph::KindOfCall& kind, std::span<const Tensor* const> arguments,
              std::vector<Tensor>& results);
  void record(graph::KindOfCall& kind, std::span<const Tensor* const> arguments,
              const CompiledBody& body, std::vector<Tensor>& results);
  void learn(graph::KindOfCall& kind, graph::RecordedCall call, const recording::World& before);
  void compare(graph::KindOfCall& kind, graph::RecordedCall call, const recording::World& before);
  void make_program(graph::KindOfCall& kind, graph::RecordedCall call, graph::Wiring wiring);
  static void require_same_number(const graph::Match& found, bool something_changed);

  const CompileOptions options;
  mutable ForkMutex mutex{ForkOrder::calls};
  std::atomic<pthread_t> thread{0};    // that is in a call
  std::list<graph::KindOfCall> kinds;  // the last used first
  graph::Turns turns;
  bool had_no_room = false;  // the last call
  std::string note;          // why the last call was not even recorded
  uint64_t recorded_calls = 0, plain_calls = 0, made = 0, dropped = 0;
};

}  // namespace detail
}  // namespace tenon
