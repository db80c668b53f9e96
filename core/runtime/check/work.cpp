#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/plugins/host/checked_api.h>

namespace tenon::checked {

using plugins::InsidePlugin;

// The work of all threads. The one that is used is never destroyed; but if two threads make one at
// once, one of the two is.
struct Works final : ForkMember {
  Works() : ForkMember(ForkOrder::tables) { join(); }
  ~Works() { leave(); }

  static Works& all() {
    static constinit NeverDestroyed<Works> works;
    return works.get();
  }

  void before_fork() override { lock.lock(); }
  void after_fork(bool in_child) override {
    if (in_child) first = nullptr;  // it belonged to threads that do not exist here
    lock.unlock();
  }

  void add(Work& work) {
    std::lock_guard guard(lock);
    work.generation_ = fork_generation();
    if (watcher_of != work.generation_ && watches) watch();
    work.next_ = first;
    if (first) first->previous_ = &work;
    first = &work;
  }

  void remove(Work& work) {
    std::lock_guard guard(lock);
    if (work.generation_ != fork_generation()) return;
    (work.previous_ ? work.previous_->next_ : first) = work.next_;
    if (work.next_) work.next_->previous_ = work.previous_;
  }

  // Without a thread, nothing is said of work that takes long.
  void watch() {
    watches = true;
    watcher_of = fork_generation();
    try {
      std::thread([this] { look_again_and_again(); }).detach();
    } catch (const std::exception&) {
    }
  }

  [[noreturn]] void look_again_and_again() {
    sigset_t all_signals;  // they are for the threads of the program
    sigfillset(&all_signals);
    pthread_sigmask(SIG_SETMASK, &all_signals, nullptr);
    pthread_setname_np(pthread_self(), "tenon-watch");
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      while (tell_of_one()) {
      }
    }
  }

  // Says that one piece of work takes long, if there is one of which this was not said.
  bool tell_of_one() {
    const auto limit = std::chrono::seconds(check_settings().seconds);
    std::string plugin, text;
    {
      std::lock_guard guard(lock);
      Work* work = first;
      while (work && (work->told_ || Work::Clock::now() - work->begin_ < limit)) work = work->next_;
      if (!work) return false;
      work->told_ = true;
      plugin = work->plugin_;
      text = work->text_;
    }
    log_message(TN_LOG_WARNING, plugin,
                fmt::format("{} has not ended after {} seconds (TENON_CHECK_TIMEOUT)", text,
                            check_settings().seconds));
    return true;
  }

  SpinLock lock;
  Work* first = nullptr;
  bool watches = false;
  uint32_t watcher_of = ~0u;  // the process that has the watching thread: fork_generation()
};

Work::Work(const PreparedPlan& plan, const Shape* shape, const PathNode* path) {
  if (!check_settings().on) return;
  begin(plan.api ? plan.api->name() : "tenon", observe::PlanAtWork(plan, shape, path).text());
}

Work::Work(const char* plugin, const std::string& text) {
  if (check_settings().on) begin(plugin, text);
}

void Work::begin(const char* plugin, const std::string& text) {
  const size_t length = std::min(text.size(), sizeof text_ - 1);
  std::memcpy(text_, text.data(), length);
  text_[length] = 0;
  plugin_ = plugin;
  begin_ = Clock::now();
  outer_ = InsidePlugin::set_work(text_);
  listed_ = true;
  watch_signals();
  Works::all().add(*this);
}

Work::~Work() {
  if (!listed_) return;
  Works::all().remove(*this);
  InsidePlugin::set_work(outer_);
}

void start_watching() {
  watch_signals();
  auto& works = Works::all();
  std::lock_guard guard(works.lock);
  works.watch();
}

// Other threads may end their work meanwhile, but their stacks remain, and the process is ending.
void print_all_work() noexcept {
  auto print = [](const char* text) {
    [[maybe_unused]] const auto written = write(2, text, std::strlen(text));
  };
  int left = 16;
  for (const Work* work = Works::all().first; work && left--; work = work->next()) {
    print("  at work: ");
    print(work->text());
    print("\n");
  }
}

}  // namespace tenon::checked
