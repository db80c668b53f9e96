#include <algorithm>
#include <vector>

#include <tenon/core/base/fork.h>

namespace tenon {

// Named by ForkMember as its friend.
struct Fork {
  std::mutex forking;  // one at a time; held from before a fork to after it
  std::mutex mutex;    // of the lists
  std::vector<ForkMember*> members;
  std::vector<ForkMember*> to_stop, stopped;  // of the fork under way: the next one to stop last
  bool late = false;                          // one joined out of its turn
  std::atomic<uint32_t> generation{0};

  static Fork& instance() {
    static auto* fork = [] {
      pthread_atfork([] { instance().before(); }, [] { instance().after(false); },
                     [] { instance().after(true); });
      return new Fork;  // never freed: processes fork while they end, too
    }();
    return *fork;
  }

  // The lists' own lock is a leaf, so it is not held while others are waited for. At the end it is,
  // until the fork has happened: nobody joins in between.
  void before() {
    forking.lock();
    mutex.lock();
    while (!stop_all()) go_on(false);
  }
  void after(bool in_child) {
    if (in_child) generation.fetch_add(1, std::memory_order_relaxed);
    go_on(in_child);
    mutex.unlock();
    forking.unlock();
  }

  // True where all members have stopped in their order; false where one joined meanwhile whose turn
  // was over.
  bool stop_all() {
    late = false;
    to_stop.assign(members.rbegin(), members.rend());
    std::stable_sort(to_stop.begin(), to_stop.end(), stops_after);
    while (!to_stop.empty() && !late) {
      auto* member = stopped.emplace_back(to_stop.back());
      to_stop.pop_back();
      mutex.unlock();
      member->before_fork();
      mutex.lock();
    }
    to_stop.clear();
    return !late;
  }
  void go_on(bool in_child) {
    for (size_t i = stopped.size(); i-- > 0;) {
      auto* member = stopped[i];
      mutex.unlock();
      member->after_fork(in_child);
      mutex.lock();
    }
    stopped.clear();
  }

  static bool stops_after(const ForkMember* a, const ForkMember* b) {
    return a->order_ > b->order_;
  }

  // What joins while a fork waits for its maker, such as the stream of a device that is being
  // opened, stops with the others.
  void join(ForkMember* member) {
    std::lock_guard lock(mutex);
    // All the memory that a fork needs, which has nobody to throw to.
    for (auto* list : {&to_stop, &stopped, &members})
      if (list->capacity() <= members.size()) list->reserve(2 * members.size() + 16);
    members.push_back(member);
    if (stopped.empty()) return;
    if (stops_after(stopped.back(), member)) late = true;
    to_stop.insert(std::lower_bound(to_stop.begin(), to_stop.end(), member, stops_after), member);
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
