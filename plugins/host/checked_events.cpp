// Streams, events, and what tells when work has ended.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include <fmt/core.h>

#include <tenon/plugins/host/backend.h>
#include <tenon/plugins/host/checked_api.h>
#include <tenon/plugins/host/checked_call.h>
#include <tenon/plugins/host/host_error.h>

namespace tenon::plugins {

namespace {

// Why a device is lost whose events do not tell when work ends.
constexpr const char* kCannotBeDrained =
    "is missing or has failed, and no event tells when the work ends; give the plugin a drain that "
    "waits for all of it";

}  // namespace

tn_error* CheckedApi::stream_create(tn_device* device, tn_stream** stream) const noexcept {
  *stream = nullptr;
  return call(
      "stream_create", [&] { return table_.stream_create(device, stream); },
      must_give(stream, "stream"));
}

void CheckedApi::stream_destroy(tn_stream* stream) const noexcept {
  release("stream_destroy", [&] { table_.stream_destroy(stream); });
}

tn_error* CheckedApi::event_create(tn_device* device, tn_event** event) const noexcept {
  *event = nullptr;
  return call(
      "event_create", [&] { return table_.event_create(device, event); },
      must_give(event, "event"));
}

void CheckedApi::event_destroy(tn_event* event) const noexcept {
  release("event_destroy", [&] { table_.event_destroy(event); });
}

tn_error* CheckedApi::event_record(tn_event* event, tn_stream* stream) const noexcept {
  return call("event_record", [&] { return table_.event_record(event, stream); });
}

tn_error* CheckedApi::stream_wait(tn_stream* stream, tn_event* event) const noexcept {
  return call("stream_wait", [&] { return table_.stream_wait(stream, event); });
}

// An error that a plugin returns tells that the work has ended, and how. An exception, or an answer
// without a meaning, does not.
template <class Ask, class Check>
tn_error* CheckedApi::ask_event(const char* function, Ask&& ask, Check&& check) const noexcept {
  bool told = false;
  tn_error* error = call(
      function,
      [&] {
        tn_error* own = ask();
        told = own;
        return own;
      },
      check);
  return !error || told || rests() ? error : endless(error);
}

// The error of a device that is lost for this one.
tn_error* CheckedApi::endless(tn_error* error) noexcept {
  tn_error* lost = nullptr;
  try {
    lost = host_error(TN_CODE_DEVICE_LOST,
                      fmt::format("{}; drain {}", text_of(*error), kCannotBeDrained));
  } catch (...) {
    lost = error_without_memory();
  }
  error->destroy(error);
  return lost;
}

tn_error* CheckedApi::event_query(tn_event* event, int32_t* done) const noexcept {
  *done = 0;
  return ask_event(
      "event_query", [&] { return table_.event_query(event, done); },
      [&]() -> std::string {
        if (*done == 0 || *done == 1) return "";
        return fmt::format(
            "set *done to {}; set it to 1 once the event is reached, and to 0 before", *done);
      });
}

tn_error* CheckedApi::event_wait(tn_event* event) const noexcept {
  return ask_event(
      "event_wait", [&] { return table_.event_wait(event); }, [] { return std::string(); });
}

// The first questions come without a pause, because most work is short. After that this thread
// sleeps: one that yields would wait for its next turn, which takes longer where others compute.
tn_error* CheckedApi::event_wait_at_most(tn_event* event, uint32_t seconds) const noexcept {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  for (int asked = 0;; ++asked) {
    int32_t done = 0;
    if (tn_error* error = event_query(event, &done)) return error;
    if (done) return nullptr;
    if (Clock::now() >= end) {
      hangs_.store(true, std::memory_order_relaxed);
      return broken("event_query",
                    fmt::format("said for {} seconds that an event was not reached "
                                "(TENON_CHECK_TIMEOUT sets how long that may take): work does not "
                                "end, or the event does not follow it",
                                seconds),
                    TN_CODE_DEVICE_LOST);
    }
    if (asked > 20)
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(asked - 20, 1000)));
  }
}

tn_error* CheckedApi::without_end() const noexcept {
  return broken("drain", kCannotBeDrained, TN_CODE_DEVICE_LOST);
}

bool CheckedApi::rests() const noexcept {
  if (hangs() || !table_.drain) return hangs_.store(true), false;
  tn_error* error = drain();
  const bool over = !error || error->code == TN_CODE_DEVICE_LOST;
  if (error) error->destroy(error);
  if (!over) hangs_.store(true);
  return over;
}

}  // namespace tenon::plugins
