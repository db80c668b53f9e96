#include <atomic>
#include <cstdint>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/dispatch/planning.h>

namespace tenon {

namespace {

// It stops after everything under which plans are made, so that nobody waits here with a lock that
// the fork still needs, and before what a plugin may use meanwhile: the compute threads and the
// log.
class Planners final : ForkMember {
 public:
  Planners() : ForkMember(ForkOrder::plans) { join(); }
  ~Planners() { leave(); }

  void come_in() {
    inside_.fetch_add(1);
    while (forks_.load()) [[unlikely]] {
      go_out();
      forks_.wait(true);
      inside_.fetch_add(1);
    }
  }
  void go_out() {
    inside_.fetch_sub(1);
    if (forks_.load()) [[unlikely]]
      inside_.notify_all();
  }

 private:
  void before_fork() override {
    forks_ = true;
    for (uint32_t now; (now = inside_.load()) != 0;) inside_.wait(now);
  }
  void after_fork(bool in_child) override {
    // Of a thread of the parent that came in and turned back at that moment.
    if (in_child) inside_ = 0;
    forks_ = false;
    forks_.notify_all();
  }

  std::atomic<uint32_t> inside_{0};  // threads
  std::atomic<bool> forks_{false};
};

Planners& planners() {
  static constinit NeverDestroyed<Planners> all;
  return all.get();
}

}  // namespace

Planning::Planning() { planners().come_in(); }
Planning::~Planning() { planners().go_out(); }

}  // namespace tenon
