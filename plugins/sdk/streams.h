// Streams and events on threads: the reference for backends whose work runs while the caller goes
// on, and ready for use by those that have no driver to do it. A plugin derives its handles,
//
//   struct tn_stream : tenon::sdk::ThreadStream {};
//   struct tn_event : tenon::sdk::ThreadEvent {};
//
// and fills its table: fill_streams(table); table.copy = queue_host_copy<>;
// table.plan_create = queued_plan_of_kernels<>.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include <tenon/plugins/sdk/queued_plan.h>
#include <tenon/plugins/sdk/sdk.h>

#pragma GCC visibility push(hidden)

namespace tenon::sdk {

// Keeps the first error of several pieces of work; later ones are dropped.
class FirstError {
 public:
  // Holds no error.
  FirstError() = default;
  FirstError(FirstError&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  FirstError& operator=(FirstError&& other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~FirstError() {
    if (error_) error_->destroy(error_);
  }

  // Runs `work` and keeps what it throws.
  template <class F>
  void attempt(F&& work) noexcept {
    keep(guard(work));
  }
  // Takes over an error, or NULL.
  void keep(tn_error* error) noexcept {
    if (!error_)
      error_ = error;
    else if (error)
      error->destroy(error);
  }
  // Returns whether there is an error.
  explicit operator bool() const { return error_ != nullptr; }
  // Returns the error as a new object, which the caller owns, or NULL.
  tn_error* copy() const noexcept { return error_ ? copy_error(*error_) : nullptr; }

 private:
  tn_error* error_ = nullptr;
};

// A queue and the thread that works through it, in order. Destroying it waits for all that is
// queued.
class ThreadStream {
 public:
  // A piece of work. What it throws (sdk::Error, …) is reported by the next event.
  using Task = std::function<void()>;

  // Starts the thread.
  ThreadStream() : worker_([this] { work(); }) { enlist(); }
  ThreadStream(const ThreadStream&) = delete;
  ~ThreadStream() { finish(); }

  // Queues a task. Throws if there is no memory for it; nothing is queued then.
  void push(Task task) {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

  // Blocks until everything that is queued is done.
  void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return queue_.empty() && !busy_; });
  }
  // Returns whether there is work that has not begun.
  bool has_queued() {
    std::lock_guard lock(mutex_);
    return !queue_.empty();
  }

  // Waits for all that is queued, and ends the thread. A class that derives from this one and has
  // members that its tasks use calls it in its destructor, before they are gone.
  void finish() {
    if (!worker_.joinable()) return;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    worker_.join();
    delist();
  }

  // Waits for every stream of this plugin, as its `drain` does.
  static void wait_for_all() {
    std::lock_guard lock(all_mutex_);
    for (auto* s = all_; s; s = s->next_) s->wait();
  }

  // Returns the errors of work since the last event. Only tasks of this stream may touch it.
  FirstError& error() { return error_; }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      {
        Task task = std::move(queue_.front());
        queue_.pop_front();
        busy_ = true;
        lock.unlock();
        error_.attempt(task);
      }  // what the task owns is gone before the stream counts as idle
      lock.lock();
      busy_ = false;
      if (queue_.empty()) idle_.notify_all();
    }
  }

  void enlist() {
    std::lock_guard lock(all_mutex_);
    next_ = all_;
    all_ = this;
  }
  void delist() {
    std::lock_guard lock(all_mutex_);
    auto** place = &all_;
    while (*place != this) place = &(*place)->next_;
    *place = next_;
  }

  std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::deque<Task> queue_;
  bool busy_ = false, stopping_ = false;
  FirstError error_;
  ThreadStream* next_ = nullptr;
  static inline std::mutex all_mutex_;
  static inline ThreadStream* all_ = nullptr;
  std::thread worker_;  // last: it begins when all else is there
};

// A point in a stream. One that was never recorded counts as reached.
class ThreadEvent {
 public:
  // Puts the event behind all that is queued on `stream`. Throws if there is no memory for it; the
  // event is as before then.
  void record(ThreadStream& stream) {
    std::lock_guard lock(state_->mutex);
    const uint64_t number = state_->recorded + 1;
    stream.push([state = state_, number, &stream] {
      std::lock_guard lock(state->mutex);
      state->reached = std::max(state->reached, number);
      state->time = std::chrono::steady_clock::now();
      if (stream.error()) state->error = std::exchange(stream.error(), FirstError());
      state->changed.notify_all();
    });
    state_->recorded = number;  // once it is sure to be reached
    state_->error = FirstError();
  }

  // Makes work that is queued on `stream` from now on wait until the event is reached. Throws if
  // there is no memory for it.
  void delay(ThreadStream& stream) const {
    uint64_t number;
    {
      std::lock_guard lock(state_->mutex);
      number = state_->recorded;
    }
    stream.push([state = state_, number] {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->reached >= number; });
    });
  }

  // Returns whether the event is reached; `error` is then an error of the work before it, or NULL.
  bool query(tn_error*& error) const noexcept {
    std::lock_guard lock(state_->mutex);
    const bool reached = state_->reached == state_->recorded;
    error = reached ? state_->error.copy() : nullptr;
    return reached;
  }
  // Waits until the event is reached, and returns an error of the work before it, or NULL.
  tn_error* wait() const noexcept {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->reached == state_->recorded; });
    return state_->error.copy();
  }

  // Returns the milliseconds from one event to another. Throws TN_CODE_INVALID_ARGUMENT if one of
  // them was not recorded or is not reached.
  static double milliseconds(const ThreadEvent& from, const ThreadEvent& to) {
    return std::chrono::duration<double, std::milli>(to.time() - from.time()).count();
  }

 private:
  std::chrono::steady_clock::time_point time() const {
    std::lock_guard lock(state_->mutex);
    if (state_->recorded == 0 || state_->reached != state_->recorded)
      throw Error(TN_CODE_INVALID_ARGUMENT,
                  state_->recorded ? "the event has no time, because it is not reached yet"
                                   : "the event has no time, because it was never recorded");
    return state_->time;
  }

  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t recorded = 0, reached = 0;            // how often
    std::chrono::steady_clock::time_point time{};  // at which it was reached last
    FirstError error;
  };
  // What is queued keeps it: an event may be destroyed before it is reached.
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

namespace detail {
template <class T, class Handle>
T* real(Handle* handle) {
  return reinterpret_cast<T*>(handle);
}
template <class T, class Handle>
void make_handle(tn_device* device, Handle** out) {
  if constexpr (std::is_constructible_v<T, tn_device*>)
    *out = reinterpret_cast<Handle*>(new T(device));
  else
    *out = reinterpret_cast<Handle*>(new T());
}
}  // namespace detail

// The `extension` of a plugin that offers the times of its events and nothing else.
template <class Event = tn_event>
const void* event_times(tn_backend*, const char* name, uint32_t version) noexcept {
  static constexpr tn_profiling table{
      sizeof(tn_profiling), nullptr, nullptr,
      [](tn_event* begin, tn_event* end, double* milliseconds) -> tn_error* {
        return guard([&] {
          *milliseconds =
              ThreadEvent::milliseconds(*detail::real<Event>(begin), *detail::real<Event>(end));
        });
      }};
  return version == 1 && std::string_view(name) == TN_EXT_PROFILING ? &table : nullptr;
}

// Fills in the functions of streams and events, `drain`, and `extension` if there is none yet, for
// the times of events. Stream and Event derive from the classes above, and are made of the
// tn_device* if they have a constructor for it.
template <class Stream = tn_stream, class Event = tn_event>
void fill_streams(tn_backend_api& table) {
  using detail::real;
  table.stream_create = [](tn_device* device, tn_stream** out) -> tn_error* {
    return guard([&] { detail::make_handle<Stream>(device, out); });
  };
  table.stream_destroy = [](tn_stream* stream) { delete real<Stream>(stream); };
  table.event_create = [](tn_device* device, tn_event** out) -> tn_error* {
    return guard([&] { detail::make_handle<Event>(device, out); });
  };
  table.event_destroy = [](tn_event* event) { delete real<Event>(event); };
  table.event_record = [](tn_event* event, tn_stream* stream) -> tn_error* {
    return guard([&] { real<Event>(event)->record(*real<Stream>(stream)); });
  };
  table.stream_wait = [](tn_stream* stream, tn_event* event) -> tn_error* {
    return guard([&] { real<Event>(event)->delay(*real<Stream>(stream)); });
  };
  table.event_query = [](tn_event* event, int32_t* done) -> tn_error* {
    tn_error* error = nullptr;
    *done = real<Event>(event)->query(error);
    return error;
  };
  table.event_wait = [](tn_event* event) -> tn_error* { return real<Event>(event)->wait(); };
  table.drain = [](tn_backend*) -> tn_error* {
    return guard([] { ThreadStream::wait_for_all(); });
  };
  if (!table.extension) table.extension = event_times<Event>;
}

// The `copy` of devices in the host's memory: it is queued, and the caller goes on.
template <class Stream = tn_stream>
tn_error* queue_host_copy(tn_device*, const tn_copy* copy, tn_stream* stream) noexcept {
  return guard([&] {
    detail::real<Stream>(stream)->push([dst = copy->dst, src = copy->src, bytes = copy->bytes] {
      if (bytes > 0) std::memcpy(dst, src, bytes);
    });
  });
}

// The `plan_create` of kernels that compute on the thread that calls them and registered
// themselves: their plans run on the stream's thread.
template <class Stream = tn_stream>
tn_error* queued_plan_of_kernels(tn_device* device, const tn_op_request* request,
                                 tn_plan** plan) noexcept {
  return guard([&] {
    *plan = make_queued_plan(create_plan(device, *request), *request,
                             [](tn_stream* stream, ThreadStream::Task task) {
                               detail::real<Stream>(stream)->push(std::move(task));
                             });
  });
}

}  // namespace tenon::sdk

#pragma GCC visibility pop
