#include <atomic>

#include <signal.h>
#include <unistd.h>

#include <tenon/core/error.h>
#include <tenon/serialization/stop_signals.h>

namespace tenon {
namespace {

// A handler may use atomics only if they have no lock.
std::atomic<bool> save_asked = false, stop_asked = false, is_watched = false;
bool stop_was_told = false;
static_assert(std::atomic<bool>::is_always_lock_free);
struct sigaction term_before, save_before;
pid_t watcher = 0;

void on_signal(int number) {
  if (getpid() != watcher) {
    sigaction(number, number == SIGTERM ? &term_before : &save_before, nullptr);
    raise(number);  // it arrives when this handler returns
  } else if (number == SIGTERM) {
    stop_asked = true;
    sigaction(SIGTERM, &term_before, nullptr);  // for the next one; safe in a handler
  } else {
    save_asked = true;
  }
}

// What the program has installed meanwhile stays.
void restore(int number, const struct sigaction& before) {
  struct sigaction now {};
  sigaction(number, nullptr, &now);
  if (now.sa_handler == on_signal) sigaction(number, &before, nullptr);
}

}  // namespace

void StopSignals::watch() {
  if (is_watched.exchange(true) && watcher == getpid())  // in a forked child, the parent's goes on
    throw ValueError(
        "CheckpointManager: another one has on_signals, and a signal has one receiver; set it for "
        "one of them");
  save_asked = stop_asked = stop_was_told = false;
  watcher = getpid();
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, nullptr, &term_before);
  sigaction(SIGUSR1, &action, &save_before);
  sigaction(SIGTERM, &action, nullptr);
}

void StopSignals::leave() {
  restore(SIGTERM, term_before);
  restore(SIGUSR1, save_before);
  is_watched = false;
  // It would be lost otherwise. A forked child did not get it.
  if (stop_asked && !stop_was_told && watcher == getpid()) raise(SIGTERM);
}

bool StopSignals::take_save() { return save_asked.exchange(false); }
bool StopSignals::stop() {
  const bool asked = stop_asked;
  stop_was_told = stop_was_told || asked;
  return asked;
}

}  // namespace tenon
