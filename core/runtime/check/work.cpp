#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
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

// The work of all threads. The object in use is never destroyed. If two threads make one at the
// same time, only one of them comes into use, and the other is destroyed.
struct Works final : ForkMember {
  Works() : ForkMember(ForkOrder::tables) { join(); }
  ~Works() { leave(); }

  static Works& all() {
    static constinit NeverDestroyed<Works> works;
    return works.get();
  }

  void before_fork() override { lock.lock(); }
  void after_fork(bool in_child) override {
    if (in_child) first = nullptr, first_call = nullptr;  // of threads that do not exist here
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

  void add(InsidePlugin& call) {
    std::lock_guard guard(lock);
    const uint32_t process = fork_generation();
    if (watcher_of != process && watches) watch();
    call.note = {nullptr, first_call, Work::Clock::now(), InsidePlugin::work(), process, false};
    if (first_call) first_call->note.previous = &call;
    first_call = &call;
  }

  void remove(InsidePlugin& call) {
    const auto& note = call.note;
    if (note.process != fork_generation()) return;
    std::lock_guard guard(lock);
    (note.previous ? note.previous->note.next : first_call) = note.next;
    if (note.next) note.next->note.previous = note.previous;
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

  // Returns an innermost call of a plugin that began before `before` and was not reported yet: one
  // for `work`, or for any work if that is null.
  InsidePlugin* call_for(const char* work, Work::Clock::time_point before) {
    for (auto* call = first_call; call; call = call->note.next) {
      const auto& note = call->note;
      if (!note.told && note.began <= before && (!work || note.work == work) && !calls_more(*call))
        return call;
    }
    return nullptr;
  }

  // Whether another call of a plugin runs inside this one, as while an error is destroyed. Then
  // only the inner call is reported.
  bool calls_more(const InsidePlugin& call) const {
    for (auto* other = first_call; other; other = other->note.next)
      if (other->outer() == &call) return true;
    return false;
  }

  // A call or piece of work that takes long, as it is reported.
  struct Told {
    std::string plugin, text;
    bool is_call;
  };

  Told tell(InsidePlugin& call) {
    call.note.told = true;
    for (Work* work = first; work; work = work->next_)
      if (work->text_ == call.note.work) work->told_ = true;
    const std::string library = *call.library() ? fmt::format(" ({})", call.library()) : "",
                      work = call.note.work ? fmt::format(" of {}", call.note.work) : "";
    return {call.name(),
            fmt::format("plugin {}{}: {}{}", call.name(), library, call.function(), work), true};
  }

  std::optional<Told> find_one() {
    const auto before = Work::Clock::now() - std::chrono::seconds(check_settings().seconds);
    std::lock_guard guard(lock);
    if (auto* call = call_for(nullptr, before)) return tell(*call);
    Work* work = first;
    while (work && (work->told_ || work->begin_ > before)) work = work->next_;
    if (!work) return std::nullopt;
    // The call in which the work waits says more than the work, even if it began a little later.
    if (auto* call = call_for(work->text_, Work::Clock::time_point::max())) return tell(*call);
    work->told_ = true;
    return Told{work->plugin_, work->text_, false};
  }

  // Reports one call or piece of work that takes long. Returns false if all were reported before.
  bool tell_of_one() {
    const auto one = find_one();
    if (!one) return false;
    const std::string help =
        one->is_call ? fmt::format("; if it never does, gdb -p {} shows where it waits", getpid())
                     : "";
    log_message(TN_LOG_WARNING, one->plugin,
                fmt::format("{} has not ended after {} seconds (TENON_CHECK_TIMEOUT){}", one->text,
                            check_settings().seconds, help));
    return true;
  }

  SpinLock lock;
  Work* first = nullptr;
  InsidePlugin* first_call = nullptr;
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
  if (works.watches) return;
  works.watch();
  InsidePlugin::watch([](InsidePlugin& call) noexcept -> InsidePlugin::Watch {
    Works::all().add(call);
    return [](InsidePlugin& ended) noexcept { Works::all().remove(ended); };
  });
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
