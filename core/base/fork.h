// What fork() finds in order: locks that nobody holds, queues that are empty. Not installed.
//
// A fork takes the calling thread along and no other. A lock that another thread holds would stay
// locked in the child for ever, and work that another thread was doing would never end. So what
// owns a lock or a thread for longer than a call is a ForkMember: before a fork each is asked to
// stop, and afterwards, in both processes, to go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include <pthread.h>

#include <tenon/core/api.h>
#include <tenon/core/base/spin_lock.h>

namespace tenon {

// The order in which they stop: whoever may wait for another, or takes another's lock while it
// holds its own, comes before it.
enum class ForkOrder { sessions, devices, plugins, backends, streams, memory, tables };

class TENON_API ForkMember {
 public:
  ForkMember(const ForkMember&) = delete;
  ForkMember& operator=(const ForkMember&) = delete;

 protected:
  explicit ForkMember(ForkOrder order) : order_(order) {}
  ~ForkMember() { leave(); }
  // In the constructor of whatever overrides the two below, once all that they use is there.
  void join();
  // First in the destructor of whatever overrides the two below: a fork under way in another thread
  // must not find it half ended. Returns when no fork needs it any more, so no lock may be held
  // that stops later.
  void leave();

 private:
  friend struct Fork;
  // Returns when nothing of it changes any more, and keeps it so.
  virtual void before_fork() = 0;
  // In the child there is no thread but the caller's.
  virtual void after_fork(bool in_child) = 0;
  const ForkOrder order_;
};

// A mutex that is free in the child. The fork waits for whoever holds it; where that is the forking
// thread itself, as in a plugin that starts a program while a device opens, it stays locked and is
// unlocked as ever, by each of the two.
class TENON_API ForkMutex final : ForkMember {
 public:
  explicit ForkMutex(ForkOrder order) : ForkMember(order) { join(); }
  ~ForkMutex() { leave(); }
  void lock() {
    mutex_.lock();
    owner_.store(pthread_self(), std::memory_order_relaxed);
  }
  void unlock() {
    owner_.store({}, std::memory_order_relaxed);
    mutex_.unlock();
  }

 private:
  void before_fork() override;
  void after_fork(bool in_child) override;
  std::mutex mutex_;
  std::atomic<pthread_t> owner_{};
  bool own_ = false;  // of the forking thread
};

// The same for short sections.
class ForkSpinLock final : public SpinLock, ForkMember {
 public:
  explicit ForkSpinLock(ForkOrder order) : ForkMember(order) { join(); }
  ~ForkSpinLock() { leave(); }

 private:
  void before_fork() override { lock(); }
  void after_fork(bool) override { unlock(); }
};

// How many forks lie between the process that first asked and this one: threads made under another
// number are not here.
TENON_API uint32_t fork_generation();

}  // namespace tenon
