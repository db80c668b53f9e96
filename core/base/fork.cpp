#include <algorithm>
#include <vector>

#include <tenon/core/base/fork.h>

namespace tenon {

// ForkMember names this class as its friend.
struct Fork {
  std::mutex forking;  // held from before a fork until after it, so only one fork runs at a time
  std::mutex mutex;    // protects the lists
  std::vector<ForkMember*> members;           // in any order: who leaves makes room for the last
  std::vector<ForkMember*> to_stop, stopped;  // for the current fork; the last of to_stop is next
  bool late = false;                          // a member joined that should have stopped before
  ForkMember* busy = nullptr;         // did not stop at once; the next attempt waits for it first
  uint64_t joined = 0;                // members so far
  std::atomic<uint32_t> attempts{0};  // to stop all, that have ended, the last by the fork
  std::atomic<uint32_t> generation{0};

  static Fork& instance() {
    static auto* fork = [] {
      pthread_atfork([] { instance().before(); }, [] { instance().after(false); },
                     [] { instance().after(true); });
      return new Fork;  // never freed, because a process can fork while it exits
    }();
    return *fork;
  }

  // No other lock is taken while the lock of the lists is held, so it is released while this waits
  // for members. At the end it is held until the fork has happened, so that no member joins in
  // between.
  void before() {
    if (is_inside_a_plugin()) return;  // stops nobody
    forking.lock();
    mutex.lock();
    while (!stop_all()) go_on(false);
  }
  void after(bool in_child) {
    if (in_child) generation.fetch_add(1, std::memory_order_relaxed);
    if (is_inside_a_plugin()) return;
    go_on(in_child);
    mutex.unlock();
    forking.unlock();
  }

  // Returns true if all members have stopped in their order, and false if a call was busy, or if a
  // member joined meanwhile that should have stopped earlier.
  bool stop_all() {
    late = false;
    to_stop = members;  // there is room for them
    std::sort(to_stop.begin(), to_stop.end(), stops_after);
    // It is a call, and these stop first.
    if (const auto at = std::find(to_stop.begin(), to_stop.end(), busy); at != to_stop.end())
      std::rotate(at, at + 1, to_stop.end());
    while (!to_stop.empty() && !late) {
      auto* member = stopped.emplace_back(to_stop.back());
      to_stop.pop_back();
      const bool waits = member->order_ != ForkOrder::calls || member == busy;
      mutex.unlock();
      const bool has_stopped = waits ? (member->before_fork(), true) : member->try_before_fork();
      mutex.lock();
      if (has_stopped) continue;
      busy = member;
      stopped.pop_back();
      return to_stop.clear(), false;
    }
    busy = nullptr;
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
    ++attempts;
    attempts.notify_all();
  }

  // Of one class, those that joined first stop first.
  static bool stops_after(const ForkMember* a, const ForkMember* b) {
    return a->order_ != b->order_ ? a->order_ > b->order_ : a->number_ > b->number_;
  }

  // A member that joins while a fork waits for its creator, such as the stream of a device that is
  // being opened, stops with the others.
  void join(ForkMember* member) {
    std::lock_guard lock(mutex);
    // Reserves all the memory that a fork needs, because a fork handler cannot report an error.
    for (auto* list : {&to_stop, &stopped, &members})
      if (list->capacity() <= members.size()) list->reserve(2 * members.size() + 16);
    member->number_ = joined++;
    member->place_ = members.size();
    members.push_back(member);
    if (stopped.empty()) return;
    if (stops_after(stopped.back(), member)) late = true;
    to_stop.insert(std::lower_bound(to_stop.begin(), to_stop.end(), member, stops_after), member);
  }
  // Waits for the end of an attempt and not of the fork, which may wait for a call of this thread.
  void leave(ForkMember* member) {
    std::unique_lock lock(mutex);
    while (std::find(stopped.begin(), stopped.end(), member) != stopped.end()) {
      const uint32_t now = attempts;
      lock.unlock();
      attempts.wait(now);
      lock.lock();
    }
    ForkMember* const last = members.back();
    members[last->place_ = member->place_] = last;
    members.pop_back();
    std::erase(to_stop, member);
    if (busy == member) busy = nullptr;
  }
};

void ForkMember::join() {
  Fork::instance().join(this);
  joined_ = true;
}
void ForkMember::leave() {
  if (joined_) Fork::instance().leave(this);
  joined_ = false;
}

void ForkMutex::before_fork() {
  own_ = owner_.load(std::memory_order_relaxed) == pthread_self();
  if (!own_) lock();
}

bool ForkMutex::try_before_fork() {
  own_ = owner_.load(std::memory_order_relaxed) == pthread_self();
  if (own_) return true;
  if (!mutex_.try_lock()) return false;
  owner_.store(pthread_self(), std::memory_order_relaxed);
  return true;
}

void ForkMutex::after_fork(bool) {
  if (!own_) unlock();
}

uint32_t fork_generation() { return Fork::instance().generation.load(std::memory_order_relaxed); }

}  // namespace tenon
