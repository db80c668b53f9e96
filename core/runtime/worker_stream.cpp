// The stream of a backend that computes on the thread of the caller: a ring of tasks and one worker
// thread. One thread at a time executes what is queued: the worker, or a thread that waits for the
// work and came before the worker had woken up.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <pthread.h>

#include <tenon/core/base/arithmetic.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/spin_lock.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/profile_log.h>
#include <tenon/core/runtime/stream.h>
#include <tenon/core/runtime/worker_task.h>

namespace tenon {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

// Work that takes longer than this goes to the worker. Shorter work runs on the thread of the
// caller if nothing is queued before it, because waking the worker would take longer.
constexpr uint64_t kInPlaceNs = 4000;
// A thread that asks for values after no more work than kBurstNs gets them sooner if it does that
// work itself, as far as it comes in pieces of kPieceNs: a worker that sleeps takes as long to wake
// up as a third of it takes on two processors.
constexpr uint64_t kPieceNs = 60'000, kBurstNs = 500'000;
// A thread that waits leaves a longer chain of work than this to the worker. What earlier steps of
// such a chain left in the caches of the worker's processor is worth more than its waking up costs.
constexpr uint64_t kTakenOverNs = 100'000;

class WorkerStream final : public DeviceStream, ForkMember {
 public:
  WorkerStream(const std::string& name, uint32_t number, FailureLog* shared)
      : DeviceStream(name, number, shared),
        ForkMember(ForkOrder::streams),
        ring_(new WorkerTask[kRingSize]),
        base_(origin() + 1),
        submitted_(origin()),
        completed_(origin()) {
    join();
    start();
    ++streams;
  }

  ~WorkerStream() override {
    --streams;
    leave();
    if (!has_thread_) return;
    push([](WorkerTask& t) { t.kind = WorkerTask::stop; });
    thread_.join();
  }

  uint64_t run(const Launch& l) override {
    require_device();
    std::lock_guard lock(lock_);
    const uint64_t before = submitted_.load(kRelaxed);
    if (is_for_caller(l.plan->cost_ns) && completed_.load(std::memory_order_acquire) == before) {
      // Nothing is queued, and the worker sleeps or spins. No other thread can submit work now, so
      // this thread acts as the stream.
      const DefaultArithmetic as_the_worker;
      run_and_log(failures, l, current_path(), before + 1, nullptr);
      // The order matters: the worker must never see a ticket that is submitted and not completed
      // but not in the ring.
      complete(before + 1);
      submitted_.store(before + 1, std::memory_order_release);
      return before + 1;
    }
    return push_locked([&](WorkerTask& t) { t.fill(l); });
  }

  uint64_t run_all(LaunchSequence& sequence) override {
    require_device();
    std::lock_guard lock(lock_);
    const uint64_t before = submitted_.load(kRelaxed);
    if (is_for_caller(sequence.cost_ns) && completed_.load(std::memory_order_acquire) == before) {
      const DefaultArithmetic as_the_worker;
      run_and_log(failures, sequence, before + 1);
      complete(before + 1);  // in this order, as above
      submitted_.store(before + 1, std::memory_order_release);
      return before + 1;
    }
    return push_locked([&](WorkerTask& t) {
      t.kind = WorkerTask::sequence;
      t.launches = &sequence;
      t.cost_ns = sequence.cost_ns;
    });
  }

  uint64_t copy(const CopyTask& task) override {
    require_device();
    return push([&](WorkerTask& t) {
      t.kind = WorkerTask::copy;
      t.heap.reset(new std::byte[sizeof(CopyTask)]);
      CopyTask queued = task;
      queued.queued_ns = profiling::queued_now();
      std::memcpy(t.heap.get(), &queued, sizeof(CopyTask));
    });
  }

  void wait_for(DeviceStream& other, uint64_t ticket, const void* data, uint64_t bytes) override {
    if (&other == this) return;
    if ((data ? other.settled(ticket) : other.reached(ticket)) && !other.failures.any()) return;
    push_wait(WorkerTask::wait_for, other, ticket, data, bytes);
  }

  uint64_t take_over(DeviceStream& other, uint64_t ticket, const void* data,
                     uint64_t bytes) override {
    if (&other == this || (other.reached(ticket) && !other.failures.any() && !failures.any()))
      return 0;
    return push_wait(WorkerTask::take_over, other, ticket, data, bytes);
  }

  uint64_t forget_failed(const void* data, uint64_t bytes) override {
    if (reached(last()) && !failures.any()) return 0;
    std::lock_guard lock(lock_);
    if (completed_.load(std::memory_order_acquire) == submitted_.load(kRelaxed)) {
      if (failures.any()) failures.clear_poison(data, bytes);
      return 0;
    }
    return push_locked([&](WorkerTask& t) {
      t.kind = WorkerTask::forget;
      t.memory = data;
      t.bytes = bytes;
    });
  }

  uint64_t last() const override { return submitted_.load(std::memory_order_acquire); }
  bool reached(uint64_t ticket) override {
    return completed_.load(std::memory_order_acquire) >= ticket;
  }

  // If no thread executes a short queue, this one does, since that takes less time than to wait
  // until the worker has woken up. For a product of 128 x 128 that is a third of the time.
  void wait(uint64_t ticket) override {
    // A thread may wait once more for what it has waited for.
    if (const uint64_t ns = burst_ns_.exchange(0, kRelaxed))
      burst_was_short_.store(ns <= kBurstNs, kRelaxed);
    if (reached(ticket)) return;
    if (is_long_chain() || !try_to_execute()) return wait_for_others(ticket);
    {
      const DefaultArithmetic as_the_worker;
      while (!reached(ticket)) execute_next();
    }
    stop_executing();
  }

 private:
  static constexpr uint64_t kRingSize = 8192;

  void wait_for_others(uint64_t ticket) {
    for (int spins = 0; spins < 200; ++spins) {
      if (reached(ticket)) return;
      cpu_pause();
    }
    waiters_.fetch_add(1);
    for (uint64_t seen; (seen = completed_.load()) < ticket;) completed_.wait(seen);
    waiters_.fetch_sub(1);
  }

  // Whether work of this cost is done at once, if nothing is queued. What is not very short is a
  // guess: threads that have waited after little work will do so again. Where there are several
  // streams, the caller is needed to queue work on the others.
  bool is_for_caller(uint64_t cost_ns) {
    const uint64_t burst_ns = burst_ns_.load(kRelaxed) + cost_ns;
    burst_ns_.store(burst_ns, kRelaxed);
    if (cost_ns <= kInPlaceNs) return cost_ns != 0;
    return cost_ns <= kPieceNs && burst_ns <= kBurstNs && burst_was_short_.load(kRelaxed) &&
           streams.load(kRelaxed) == 1;
  }

  bool is_long_chain() const {
    return submitted_.load(kRelaxed) > completed_.load(kRelaxed) + 1 &&
           pushed_ns_.load(kRelaxed) - executed_ns_.load(kRelaxed) > kTakenOverNs;
  }

  void start() {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error& e) {
      throw DeviceError(
          fmt::format("{}: its worker thread cannot be started: {}", name_, e.what()));
    }
    pthread_setname_np(thread_.native_handle(), name_.substr(0, 15).c_str());
    has_thread_ = true;
  }

  // While the lock is held, no work is queued, and the worker finishes what is in the queue.
  void before_fork() override {
    lock_.lock();
    wait_for_others(submitted_.load());
  }
  // The first work in the child that needs a worker starts it, because most children start another
  // program before.
  void after_fork(bool in_child) override {
    if (in_child) {
      new (&thread_) std::thread;  // the old thread does not exist here and cannot be joined
      line_front_ = line_end_;     // the threads that waited for room do not exist here either
      has_thread_ = false;
      asleep_ = executing_ = false;
      waiters_ = 0;
      forget_failures();
    }
    lock_.unlock();
  }

  uint64_t push_wait(WorkerTask::Kind kind, DeviceStream& other, uint64_t ticket, const void* data,
                     uint64_t bytes) {
    return push([&](WorkerTask& t) {
      t.kind = kind;
      t.other = &other;
      t.other_ticket = ticket;
      t.memory = data;
      t.bytes = bytes;
    });
  }

  template <class F>
  uint64_t push(F&& fill_in) {
    std::lock_guard lock(lock_);
    return push_locked(fill_in);
  }

  // If `fill_in` throws, nothing is queued.
  template <class F>
  uint64_t push_locked(F&& fill_in) {
    if (!has_thread_) [[unlikely]]
      start();
    if (is_full() || line_front_.load(kRelaxed) != line_end_) [[unlikely]]
      await_room();
    const uint64_t ticket = submitted_.load(kRelaxed) + 1;
    // An idle ring starts again at its first slot, so that a short queue stays in cache.
    if (completed_.load(std::memory_order_acquire) + 1 == ticket) base_.store(ticket, kRelaxed);
    WorkerTask& t = ring_[(ticket - base_.load(kRelaxed)) % kRingSize];
    t.cost_ns = 0;
    fill_in(t);
    pushed_ns_.store(pushed_ns_.load(kRelaxed) + t.cost_ns, kRelaxed);
    submitted_.store(ticket);
    wake_worker();
    return ticket;
  }

  bool is_full() const {
    return submitted_.load(kRelaxed) + 1 - completed_.load(std::memory_order_acquire) >= kRingSize;
  }

  // If the ring is full, callers wait, because memory is limited. They continue in the order in
  // which they came. The lock is free meanwhile; otherwise a thread that queues without a pause
  // would never let another one in.
  [[gnu::noinline]] void await_room() {
    const uint32_t place = line_end_++;
    do {
      lock_.unlock();
      for (uint32_t front; (front = line_front_.load()) != place;) line_front_.wait(front);
      const uint64_t wanted = submitted_.load() + 2;  // no other thread queues anything now
      if (wanted > kRingSize) wait(wanted - kRingSize);
      lock_.lock();
    } while (is_full());
    line_front_.store(place + 1);
    if (line_end_ != place + 1) line_front_.notify_all();
  }

  void work() {
    observe::name_this_thread(name_);
    for (;;) {
      await_task();
      while (has_task())
        if (!execute_next()) return;
      stop_executing();
    }
  }

  // The order matters: work that is submitted but not completed can then only be in the queue. Work
  // that callers ran themselves has taken some tickets.
  bool has_task() const {
    const uint64_t submitted = submitted_.load();
    return submitted > completed_.load();
  }

  // Returns false for the task that ends the worker. Only the thread that executes the queue calls
  // it, and only if there is a task.
  bool execute_next() {
    const uint64_t ticket = completed_.load(std::memory_order_acquire) + 1;
    WorkerTask& t = ring_[(ticket - base_.load(kRelaxed)) % kRingSize];
    if (t.kind == WorkerTask::stop) return false;
    execute(t, ticket);
    t.heap.reset();
    executed_ns_.store(executed_ns_.load(kRelaxed) + t.cost_ns, kRelaxed);
    complete(ticket);
    return true;
  }

  bool try_to_execute() { return !executing_.load(kRelaxed) && !executing_.exchange(true); }
  // Another thread may have queued work after the worker had looked for it and gone to sleep.
  void stop_executing() {
    executing_.store(false);
    if (has_task()) wake_worker();
  }

  // The worker announces its sleep and then looks for work; this is called after work was queued or
  // left. In the default memory order, one of the two sees the other.
  void wake_worker() {
    if (!asleep_.load()) return;
    wakes_.fetch_add(1);
    wakes_.notify_one();
  }

  // Waiting threads are counted, because a notification can cost a system call even if no thread
  // waits. Both sides use the default memory order, so that either the waiting thread sees the new
  // value, or this thread sees the waiting one.
  void complete(uint64_t ticket) {
    completed_.store(ticket);
    if (waiters_.load()) completed_.notify_all();
  }

  // Returns when there is a task and this thread, the worker, is the one that executes the queue.
  // While another thread does, the worker sleeps at once, because that thread needs the processors.
  void await_task() {
    for (int spins = 0;; ++spins) {
      if (has_task() && try_to_execute()) {
        if (has_task()) return;
        stop_executing();
      }
      if (spins < 400 && !executing_.load(kRelaxed)) {
        cpu_pause();
        continue;
      }
      const uint32_t seen = wakes_.load();
      asleep_.store(true);
      if (!has_task() || executing_.load()) wakes_.wait(seen);
      asleep_.store(false);
    }
  }

  void execute(WorkerTask& t, uint64_t ticket) {
    if (t.kind == WorkerTask::take_over) {
      t.wait_for_other();
      failures.take_over(t.other->failures, t.memory, t.bytes);
    } else if (t.kind == WorkerTask::wait_for) {
      t.wait_for_other();
      if (t.other->failures.any())
        t.other->failures.pass_on(t.other_ticket, failures, t.memory, t.bytes);
    } else if (t.kind == WorkerTask::forget) {
      if (failures.any()) failures.clear_poison(t.memory, t.bytes);
    } else if (t.kind == WorkerTask::sequence) {
      run_and_log(failures, *t.launches, ticket);
    } else if (t.kind == WorkerTask::copy) {
      copy_and_log(failures, *reinterpret_cast<CopyTask*>(t.heap.get()), ticket, nullptr);
    } else {
      const Launch l = t.launch();
      run_and_log(failures, l, t.path, ticket, nullptr);
    }
  }

  SpinLock lock_;  // protects the submission of work
  // Threads that wait for room form a line. Both numbers are changed only under the lock.
  uint32_t line_end_ = 0;
  std::atomic<uint32_t> line_front_{0};
  bool has_thread_ = false;
  std::unique_ptr<WorkerTask[]> ring_;
  // The ticket of slot 0; it changes only while the worker has nothing to do.
  std::atomic<uint64_t> base_;
  alignas(64) std::atomic<uint64_t> submitted_;
  alignas(64) std::atomic<uint64_t> completed_;
  alignas(64) std::atomic<uint32_t> waiters_{0};  // threads in wait()
  std::atomic<bool> asleep_{false};               // the worker sleeps, or is about to
  std::atomic<uint32_t> wakes_{0};                // what it sleeps on
  std::atomic<bool> executing_{false};            // a thread executes the queue
  // What all tasks cost that were ever queued, and that were executed.
  std::atomic<uint64_t> pushed_ns_{0}, executed_ns_{0};
  // What was submitted since a thread waited cost so much, and what was before that cost little.
  std::atomic<uint64_t> burst_ns_{0};
  std::atomic<bool> burst_was_short_{false};
  inline static std::atomic<int> streams{0};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<DeviceStream> make_worker_stream(const std::string& name, uint32_t number,
                                                 FailureLog* shared) {
  return std::make_unique<WorkerStream>(name, number, shared);
}

}  // namespace tenon
