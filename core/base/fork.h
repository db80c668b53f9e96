// Brings locks and threads of the library safely through fork().
//
// A fork copies only the calling thread. A lock that another thread holds would stay locked in the
// child forever, and the work of other threads would never finish there. Therefore everything that
// owns a lock or a thread for longer than one call is a ForkMember: each member is asked to stop
// before a fork, and to continue after it, in both processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <pthread.h>

#include <tenon/core/api.h>
#include <tenon/core/base/spin_lock.h>

namespace tenon {

// Whether this thread is inside a plugin; plugins/host says so. Then a fork stops nobody: others
// may wait for the very call that forks, and hold what the members would wait for. Such a child can
// only start another program or end (_exit).
bool is_inside_a_plugin() noexcept;

// The order in which members stop. A member that may wait for another, or that takes another's lock
// while it holds its own, comes first. Among calls there is no such order, because functions call
// one another as programs want: a fork that finds one of them busy waits for it with none stopped.
enum class ForkOrder {
  calls,
  sessions,
  devices,
  plugins,
  backends,
  streams,
  memory,
  plans,
  tables
};

class TENON_API ForkMember {
 public:
  ForkMember(const ForkMember&) = delete;
  ForkMember& operator=(const ForkMember&) = delete;

 protected:
  explicit ForkMember(ForkOrder order) : order_(order) {}
  ~ForkMember() { leave(); }
  // Registers this member. A derived class calls it in its constructor, after everything that the
  // two functions below use has been constructed.
  void join();
  // Unregisters this member. A derived class calls it first in its destructor, so that a fork in
  // another thread never sees a half-destroyed object. It returns when no fork needs this member
  // any more; do not call it while holding a lock that stops later.
  void leave();

 private:
  friend struct Fork;
  // Returns when the state of this member no longer changes, and keeps it unchanged until
  // after_fork.
  virtual void before_fork() = 0;
  // The same if that needs no waiting. Otherwise it returns false, and nothing has stopped.
  virtual bool try_before_fork() {
    before_fork();
    return true;
  }
  // In the child, the calling thread is the only one.
  virtual void after_fork(bool in_child) = 0;
  const ForkOrder order_;
  bool joined_ = false;  // known to the thread that constructs and destroys
  uint64_t number_ = 0;  // of those that ever joined
  size_t place_ = 0;     // in the list of members
};

// A mutex that is unlocked in the child. A fork waits until the mutex is free. If the forking
// thread holds it itself, as when a plugin starts a program while it opens a device, it stays
// locked, and parent and child each unlock it as usual.
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
  bool try_before_fork() override;
  void after_fork(bool in_child) override;
  std::mutex mutex_;
  std::atomic<pthread_t> owner_{};
  bool own_ = false;  // the forking thread holds the mutex
};

// The same, as a spin lock for short sections.
class ForkSpinLock final : public SpinLock, ForkMember {
 public:
  explicit ForkSpinLock(ForkOrder order) : ForkMember(order) { join(); }
  ~ForkSpinLock() { leave(); }

 private:
  void before_fork() override { lock(); }
  void after_fork(bool) override { unlock(); }
};

// Returns how many forks separate this process from the one that called this function first. A
// thread that was created at another number does not exist in this process.
TENON_API uint32_t fork_generation();

}  // namespace tenon
