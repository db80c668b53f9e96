// The handler of the signals with which the system ends a program that a plugin has spoilt. It says
// where that happened, and leaves the rest to the handler before it.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/plugins/host/checked_api.h>
#include <tenon/plugins/host/library_table.h>

namespace tenon::checked {

namespace {

using plugins::InsidePlugin;

struct Watched {
  int signal;
  const char* name;
  struct sigaction before;  // the action that ours stands in for
};
Watched watched[] = {{SIGSEGV, "SIGSEGV", {}},
                     {SIGBUS, "SIGBUS", {}},
                     {SIGFPE, "SIGFPE", {}},
                     {SIGILL, "SIGILL", {}},
                     {SIGABRT, "SIGABRT", {}}};

// A text of fixed size, because a signal handler must not allocate.
class Line {
 public:
  Line& operator<<(const char* text) {
    const size_t bytes = std::min(std::strlen(text), sizeof text_ - used_ - 1);
    std::memcpy(text_ + used_, text, bytes);
    used_ += bytes;
    return *this;
  }
  void print() {
    text_[used_] = '\n';
    [[maybe_unused]] const auto written = write(2, text_, used_ + 1);
  }

 private:
  char text_[1024];
  size_t used_ = 0;
};

// Where the thread was that got the signal, or NULL on a machine of which this is not known.
const void* place_of([[maybe_unused]] const void* context) {
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(static_cast<const ucontext_t*>(context)->uc_mcontext.pc);
#else
  return nullptr;
#endif
}

void tell(int number, const char* signal, const void* place) {
  Line line;
  line << "tenon: signal " << signal;
  const InsidePlugin* inside = InsidePlugin::current();
  if (!inside) {
    // A plugin may have threads of its own, such as those of its streams. abort() lies in the C
    // library: whoever called it is on the stack.
    const auto* library = plugins::library_at(place);
    if (!library && number == SIGABRT) library = plugins::library_on_this_stack();
    if (library)
      line << " in plugin " << library->name.c_str() << " (" << library->path.c_str()
           << "): on a thread of its own";
    else
      line << " in code of no plugin, on a thread that is not in a call of a plugin";
    line.print();
    return print_all_work();
  }
  line << " in plugin " << inside->name();
  if (*inside->library()) line << " (" << inside->library() << ")";
  line << ": " << inside->function();
  if (const char* work = InsidePlugin::work()) line << " of " << work;
  line.print();
}

// How often ours was put before another action; and for each signal how often it had been when
// this thread last was in ours, since its last work began. Small, as what is thread-local has to
// be; after the largest number comes 1, as 0 says that the thread was not in ours.
std::atomic<uint16_t> installed{1};
constinit thread_local uint16_t handled[std::size(watched)] TENON_FAST_TLS = {};

// Another handler may have put ours back as the one that was there before it, although it comes
// after ours: then each would pass the signal on to the other for ever, so the system gets it.
//
// The instruction that caused a signal causes it again after this returns; a signal that was sent
// is sent again.
void on_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  for (size_t i = 0; i < std::size(watched); ++i) {
    if (watched[i].signal != signal) continue;
    const bool again = std::exchange(handled[i], installed.load()) == installed;
    struct sigaction system {};
    system.sa_handler = SIG_DFL;
    if (!again) tell(signal, watched[i].name, place_of(context));
    sigaction(signal, again ? &system : &watched[i].before, nullptr);
  }
  if (info->si_code <= 0) raise(signal);
  errno = error;
}

// A stack for signals, because that of the thread may have overflowed.
class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    if (sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return;
    memory_ = new (std::nothrow) char[kBytes];
    const stack_t own{memory_, 0, kBytes};
    if (memory_) sigaltstack(&own, nullptr);
  }
  ~SignalStack() {
    stack_t present{};
    if (memory_ && sigaltstack(nullptr, &present) == 0 && present.ss_sp == memory_) {
      const stack_t none{nullptr, SS_DISABLE, 0};
      sigaltstack(&none, nullptr);
    }
    delete[] memory_;
  }

 private:
  static constexpr size_t kBytes = 64 << 10;
  char* memory_ = nullptr;
};

}  // namespace

void watch_signals() noexcept {
  static constinit NeverDestroyed<ForkMutex, ForkOrder::tables> mutex;
  PerThread<SignalStack>::get();
  std::fill(std::begin(handled), std::end(handled), 0);
  std::lock_guard lock(mutex.get());
  for (auto& w : watched) {
    struct sigaction now {};
    if (sigaction(w.signal, nullptr, &now) != 0 || now.sa_sigaction == on_signal) continue;
    w.before = now;
    installed = static_cast<uint16_t>(installed % UINT16_MAX + 1);
    struct sigaction ours {};
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(w.signal, &ours, nullptr);
  }
}

}  // namespace tenon::checked
