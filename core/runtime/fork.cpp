#include <tenon/core/runtime/fork.h>

#include <algorithm>
#include <vector>

namespace tenon {

// Named by ForkMember as its friend.
struct Fork {
  std::mutex forking;  // one at a time; held from before a fork to after it
  std::vector<ForkMember*> stopped;
  std::mutex mutex;  // of the members
  std::vector<ForkMember*> members;
  std::atomic<uint32_t> generation{0};

  static Fork& instance() {
    static auto* fork = [] {
      pthread_atfork([] { instance().before(); }, [] { instance().after(false); }, [] { instance().after(true); });
      return new Fork;  // never freed: processes fork while they end, too
    }();
    return *fork;
  }

  // The list's own lock is a leaf, so it is not held while others are waited for.
  void before() {
    forking.lock();
    {
      std::lock_guard lock(mutex);
      stopped = members;
    }
    std::stable_sort(stopped.begin(), stopped.end(), [](auto* a, auto* b) { return a->order_ < b->order_; });
    for (auto* member : stopped) member->before_fork();
    mutex.lock();
  }
  void after(bool in_child) {
    if (in_child) generation.fetch_add(1, std::memory_order_relaxed);
    mutex.unlock();
    for (auto it = stopped.rbegin(); it != stopped.rend(); ++it) (*it)->after_fork(in_child);
    forking.unlock();
  }
};

ForkMember::ForkMember(ForkOrder order) : order_(order) {
  auto& fork = Fork::instance();
  std::lock_guard lock(fork.mutex);
  fork.members.push_back(this);
}

ForkMember::~ForkMember() {
  auto& fork = Fork::instance();
  std::lock_guard lock(fork.mutex);
  std::erase(fork.members, this);
}

void ForkMutex::before_fork() {
  own_ = owner_.load(std::memory_order_relaxed) == pthread_self();
  if (!own_) lock();
}

void ForkMutex::after_fork(bool) {
  if (!own_) unlock();
}

uint32_t fork_generation() { return Fork::instance().generation.load(std::memory_order_relaxed); }

}  // namespace tenon
