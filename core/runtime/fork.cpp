#include <tenon/core/runtime/fork.h>

#include <algorithm>
#include <vector>

namespace tenon {

// Named by ForkMember as its friend.
struct Fork {
  std::mutex forking;  // one at a time; held from before a fork to after it
  std::mutex mutex;    // of the lists
  std::vector<ForkMember*> members;
  std::vector<ForkMember*> to_stop, stopped;  // of the fork under way: the next one to stop last
  std::atomic<uint32_t> generation{0};

  static Fork& instance() {
    static auto* fork = [] {
      pthread_atfork([] { instance().before(); }, [] { instance().after(false); }, [] { instance().after(true); });
      return new Fork;  // never freed: processes fork while they end, too
    }();
    return *fork;
  }

  // The lists' own lock is a leaf, so it is not held while others are waited for.
  void before() {
    forking.lock();
    mutex.lock();
    to_stop.assign(members.rbegin(), members.rend());
    std::stable_sort(to_stop.begin(), to_stop.end(), [](auto* a, auto* b) { return a->order_ > b->order_; });
    while (!to_stop.empty()) {
      auto* member = stopped.emplace_back(to_stop.back());
      to_stop.pop_back();
      mutex.unlock();
      member->before_fork();
      mutex.lock();
    }
  }
  void after(bool in_child) {
    if (in_child) generation.fetch_add(1, std::memory_order_relaxed);
    mutex.unlock();
    for (auto it = stopped.rbegin(); it != stopped.rend(); ++it) (*it)->after_fork(in_child);  // nobody else changes it meanwhile
    mutex.lock();
    stopped.clear();
    mutex.unlock();
    forking.unlock();
  }

  void join(ForkMember* member) {
    std::lock_guard lock(mutex);
    members.push_back(member);
  }
  void leave(ForkMember* member) {
    std::unique_lock lock(mutex);
    while (std::find(stopped.begin(), stopped.end(), member) != stopped.end()) {
      lock.unlock();
      std::lock_guard until_it_has_forked(forking);
      lock.lock();
    }
    std::erase(members, member);
    std::erase(to_stop, member);
  }
};

void ForkMember::join() { Fork::instance().join(this); }
void ForkMember::leave() { Fork::instance().leave(this); }

void ForkMutex::before_fork() {
  own_ = owner_.load(std::memory_order_relaxed) == pthread_self();
  if (!own_) lock();
}

void ForkMutex::after_fork(bool) {
  if (!own_) unlock();
}

uint32_t fork_generation() { return Fork::instance().generation.load(std::memory_order_relaxed); }

}  // namespace tenon
