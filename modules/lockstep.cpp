#include <algorithm>
#include <thread>
#include <utility>

#include <tenon/core/autograd/anomaly.h>
#include <tenon/core/autograd/recomputation.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/base/turns.h>
#include <tenon/core/device_scope.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/modules/listing.h>
#include <tenon/modules/lockstep.h>

namespace tenon::nn::detail {

namespace {

// Which part of which lockstep this thread runs.
struct Seat {
  Lockstep* of = nullptr;
  size_t part = 0;
};
const Seat* seat() { return static_cast<const Seat*>(part_in_turns()); }

class Seated {
 public:
  Seated(Lockstep* of, size_t part) : seat_{of, part}, before_(seat()) {
    const auto key = turns_key.get(nullptr);
    if (!key || pthread_setspecific(*key, &seat_) != 0)
      throw Error(
          "the system has no keys left for data of threads (PTHREAD_KEYS_MAX), of which layers "
          "that wait for each other need one");
  }
  ~Seated() { pthread_setspecific(*turns_key.get(nullptr), before_); }
  Seated(const Seated&) = delete;
  Seated& operator=(const Seated&) = delete;

 private:
  const Seat seat_;
  const Seat* const before_;
};

// Ends a part because another has failed. No std::exception, so that nobody takes it for an error.
struct Abandoned {};

}  // namespace

// What operators and modules ask their thread for, taken from the thread that calls.
class CallersSettings {
 public:
  // On another thread: all that follows there is as on the caller's.
  template <class F>
  void run(const F& body) const {
    continue_scopes(scopes_);
    const GradMode grad(grad_);
    const DetectAnomaly anomaly(anomaly_);
    const ModulePath path(path_);
    const AutocastState::Guard autocast(autocast_);
    ReplicaScope::continue_in(scope_);
    Recomputation::continue_in(recording_);
    continue_call(call_);
    body();
  }

 private:
  const tenon::detail::DeviceScope* const scopes_ = innermost_scope;
  const bool grad_ = grad_enabled(), anomaly_ = detects_anomaly();
  const PathNode* const path_ = current_path();
  const uint64_t scope_ = ReplicaScope::current();
  Recomputation::Scope* const recording_ = Recomputation::current();
  const CallPlace call_ = current_call();
  const AutocastState autocast_;
};

// The threads of all parts but the first, which are joined in any case.
class Lockstep::Threads {
 public:
  explicit Threads(Lockstep& of) : of_(of) {}
  ~Threads() {
    for (auto& thread : all_) thread.join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // All of them wait for their turn. If the system has no more threads, those that there are end.
  void start(const std::function<void(size_t)>& work) {
    all_.reserve(of_.parts_.size() - 1);
    try {
      for (size_t i = 1; i < of_.parts_.size(); ++i)
        all_.emplace_back([this, i, &work] { of_.run_part(i, work, &settings_); });
    } catch (...) {
      const std::lock_guard lock(of_.mutex_);
      of_.failure_ = std::current_exception();
      for (size_t i = all_.size() + 1; i < of_.parts_.size(); ++i) of_.parts_[i].done = true;
    }
  }

 private:
  Lockstep& of_;
  const CallersSettings settings_;
  std::vector<std::thread> all_;
};

Lockstep* Lockstep::current() {
  const Seat* here = seat();
  return here ? here->of : nullptr;
}

void Lockstep::run(size_t parts, const std::function<void(size_t)>& work,
                   const std::function<void(size_t)>& resume) {
  recording::refuse("a module runs in several threads");
  Lockstep all(parts, resume);
  {
    Threads threads(all);
    threads.start(work);
    all.run_part(0, work, nullptr);
  }
  if (all.failure_) std::rethrow_exception(all.failure_);
}

// The settings are made in the part's turn, so that their failure is one of the part.
void Lockstep::run_part(size_t i, const std::function<void(size_t)>& work,
                        const CallersSettings* settings) noexcept {
  const auto body = [&] {
    {
      std::unique_lock lock(mutex_);
      wait_for_turn(lock, i);
    }
    const Seated seated(this, i);
    work(i);
  };
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_ == i; });
  }
  std::exception_ptr failure;
  try {
    settings ? settings->run(body) : body();
  } catch (const Abandoned&) {
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = failure;
  parts_[i].done = true;
  pass_turn(i);
}

// To the next part that is not done.
void Lockstep::pass_turn(size_t from) {
  for (size_t step = 1; step <= parts_.size(); ++step) {
    const size_t next = (from + step) % parts_.size();
    if (parts_[next].done) continue;
    turn_ = next;
    changed_.notify_all();
    return;
  }
}

void Lockstep::wait_for_turn(std::unique_lock<std::mutex>& lock, size_t i) {
  changed_.wait(lock, [&] { return turn_ == i; });
  if (failure_) throw Abandoned();
  resume_(i);
}

Tensor Lockstep::exchange(const void* place, const Tensor& x, const Join& join) {
  Part& mine = parts_[seat()->part];
  {
    std::unique_lock lock(mutex_);
    mine.place = place;
    mine.given = x;
    mine.waits = true;
    pass_turn(seat()->part);
    wait_for_turn(lock, seat()->part);
  }
  // The turn has come round: every other part waits as well, or is done. It is this part's alone
  // until it is passed on, so nothing needs the lock.
  if (mine.waits) join_all(place, join);
  return std::exchange(mine.result, Tensor());
}

void Lockstep::join_all(const void* place, const Join& join) {
  std::vector<Tensor> given;
  for (Part& part : parts_) {
    if (part.done || !part.waits || part.place != place)
      throw ValueError(fmt::format(
          "DataParallel: part {} of the batch {} where part {} computes with the others{}; all "
          "parts have to call the layers with common statistics in the same order",
          &part - parts_.data(), part.done ? "has ended" : "is in another layer", seat()->part,
          path_suffix()));
    given.push_back(std::exchange(part.given, Tensor()));
  }
  auto results = join(given);
  for (size_t i = 0; i < parts_.size(); ++i) {
    parts_[i].result = std::move(results[i]);
    parts_[i].waits = false;
  }
}

}  // namespace tenon::nn::detail
