// The stream of a backend that has streams: calls go directly to the plugin, and tickets are mapped
// to its events.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/runtime/device_clock.h>
#include <tenon/core/runtime/device_work.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/stream.h>
#include <tenon/plugins/host/checked_extensions.h>

namespace tenon {

namespace checked {
class GraphCheck;
}

class LaunchGraph;

class PluginStream final : public DeviceStream, ForkMember {
 public:
  PluginStream(const plugins::CheckedApi& api, tn_device* device, const std::string& name,
               uint32_t number, FailureLog* shared);
  ~PluginStream() override;

  uint64_t run(const Launch& launch) override;
  uint64_t copy(const CopyTask& task) override;
  void wait_for(DeviceStream& other, uint64_t ticket, const void* data, uint64_t bytes) override;
  uint64_t take_over(DeviceStream& other, uint64_t ticket, const void* data,
                     uint64_t bytes) override;
  // A failure is logged when the work is queued, and late failures name no memory, so nothing has
  // to be waited for.
  uint64_t forget_failed(const void* data, uint64_t bytes) override {
    if (failures.any()) failures.clear_poison(data, bytes);
    return 0;
  }
  uint64_t last() const override { return submitted_.load(std::memory_order_acquire); }
  bool reached(uint64_t ticket) override;
  bool settled(uint64_t ticket) override {
    return reached(ticket) && (first_sourced_ > ticket || settle_sources(ticket));
  }
  void wait(uint64_t ticket) override;
  tn_stream* native() const override { return stream_; }

  // Waits until the stream is idle and starts recording for the calling thread. Until
  // `end_capture`, run() records.
  void begin_capture(const plugins::CheckedCapture& api, Capture& capture);
  // Returns the error of the plugin, or null and the graph.
  tn_error* end_capture(const plugins::CheckedCapture& api, tn_graph** graph);
  // Queues a graph, with `check` in checked mode, which is null otherwise. Returns null, or the
  // failure if it could not be queued, which is in the log then.
  FailureLog::Pointer replay(const plugins::CheckedCapture& api, tn_graph* graph, uint64_t& ticket,
                             checked::GraphCheck* check);

  // Whether launches can be recorded apart from what runs here (core/runtime/launch_graph.h).
  bool can_record() const;
  // Called at exit: waits for the graphs of launches and destroys them. There are none afterwards.
  void close_graphs();

  // Makes one call for several streams. `call` gets their handles, and no other thread can queue
  // work on any of them meanwhile. The work on each stream reads what the first `num_read` streams
  // wrote before, so their late failures count for it, too. Returns null, or the failure, which is
  // then in the log of each stream. Afterwards, last() of each stream is at least the ticket of the
  // call. If somebody watches, `watched` is called with the place of each stream, where to note its
  // part of the work, and whether it failed.
  using Watched = std::function<void(size_t, observe::DeviceWork*, bool)>;
  template <class F>
  static FailureLog::Pointer queue_together(std::span<PluginStream* const> streams, size_t num_read,
                                            const char* what, F&& call, const Watched& watched);

  // Called at exit: destroys the events and the stream. Later work is refused. Waiting returns at
  // once, because there is nothing left to wait for.
  void close();

 private:
  struct Mark {
    uint64_t ticket;
    tn_event* event;
    // Set for work that is watched: the event before it, and who watches.
    tn_event* begin = nullptr;
    std::unique_ptr<observe::DeviceWork> work = nullptr;
  };
  // The work that was queued last, so that an error which the device reports late can name it.
  struct Queued {
    uint64_t ticket = 0;
    const PreparedPlan* plan = nullptr;  // a plan, with the shape of the call, or
    Shape shape;
    const char* what = nullptr;
    const PathNode* path = nullptr;
  };
  // Work from ticket `first` on reads what the work of another device wrote up to `ticket`, whose
  // failure may not be known yet.
  struct Source {
    PluginStream* stream;
    uint64_t ticket, first;
    bool operator==(const Source&) const = default;
  };
  class LockedStreams;
  friend class LaunchGraph;

  void before_fork() override {}
  void after_fork(bool in_child) override;
  uint64_t next_ticket(const Launch* launch, const char* what);
  uint64_t record(const Launch& launch);
  tn_error* launch(const plugins::CheckedCapture& api, tn_graph* graph, checked::GraphCheck* check);
  bool takes_graphs() const;
  uint64_t take_tickets(const LaunchSequence& sequence, size_t first, size_t end);
  void destroy_graphs();
  void require_usable() const;
  tn_event* mark_covering(uint64_t ticket);
  tn_event* new_mark();
  tn_event* take_event();
  bool record_event(tn_event* event);
  void reserve_spare() { spare_.reserve(2 * marks_.size() + spare_.size() + 3); }
  void release(const Mark& mark);
  void start_clock(std::unique_lock<std::mutex>& lock);
  std::unique_ptr<observe::DeviceWork> begin_times() {
    return clock_ && observe::watched() ? begin_watched() : nullptr;
  }
  std::unique_ptr<observe::DeviceWork> begin_watched() noexcept;
  void end_times(uint64_t ticket, std::unique_ptr<observe::DeviceWork> work) noexcept;
  void tell_times(Mark& mark);
  tn_error* await(tn_event* event) const;
  void wait_locked(std::unique_lock<std::mutex>& lock, uint64_t ticket);
  void await_front(std::unique_lock<std::mutex>& lock);
  void wait_until_idle(std::unique_lock<std::mutex>& lock);
  void poll();
  void retire_front();
  void add_late_error(tn_error* error, uint64_t ticket);
  void add_mark_error(tn_error* error);
  FailureLog::Pointer name_late(tn_error* error, uint64_t last) const;
  std::string in_flight(uint64_t last, const std::string& op) const;
  void finish_if_lost();
  void drain(std::unique_lock<std::mutex>& lock);
  bool queue_wait(PluginStream& peer, uint64_t ticket, bool reads);
  void add_source(PluginStream& stream, uint64_t ticket, uint64_t first);
  void note_first_sourced() {
    uint64_t first = ~uint64_t{0};
    for (auto& s : sources_) first = std::min(first, s.first);
    first_sourced_ = first;
  }
  std::vector<Source> sources_of(uint64_t ticket);
  void check_sources(uint64_t ticket);
  bool settle_sources(uint64_t ticket);

  const plugins::CheckedApi& api_;
  tn_device* device_;
  tn_stream* stream_ = nullptr;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> submitted_, completed_;  // changed only under the lock
  std::deque<Mark> marks_;                       // ordered by ticket
  bool awaited_ = false;             // a thread waits for the first mark, without the lock,
  bool draining_ = false;            // or for all work
  std::condition_variable retired_;  // completed_ changed, or one of these became false
  std::vector<tn_event*> spare_;
  const PluginStream* awaited_peer_ = nullptr;  // the last one that it was told to wait for,
  uint64_t awaited_ticket_ = 0;                 // up to this ticket
  FailureLog::Pointer unmarked_;                // the last failure to make a mark
  std::vector<Source> sources_;                 // for work that was not waited for yet
  // The least `first` of them; it is raised after their failures were passed on.
  std::atomic<uint64_t> first_sourced_{~uint64_t{0}};
  std::array<Queued, 64> ring_;
  // From when somebody first wants to know when work ran, unless the device does not say.
  std::optional<DeviceClock> clock_;
  bool clock_asked_for_ = false;
  // On which launches are recorded, once there were any: nothing else is queued there.
  tn_stream* recorder_ = nullptr;
  std::vector<LaunchGraph*> graphs_;
  bool graphs_closed_ = false;
};

// Locks streams in the order of their addresses, so that two threads cannot block each other.
class PluginStream::LockedStreams {
 public:
  explicit LockedStreams(std::span<PluginStream* const> streams);
  ~LockedStreams();
  void prepare(size_t num_read, const char* what);  // DeviceError if one of them cannot be used
  std::vector<tn_stream*> handles;
  FailureLog::Pointer finish(tn_error* error, const char* what, const Watched& watched);

 private:
  std::span<PluginStream* const> streams_;
  std::vector<std::unique_ptr<observe::DeviceWork>> works_;  // of the streams that are watched
  std::vector<PluginStream*> locked_;
};

template <class F>
FailureLog::Pointer PluginStream::queue_together(std::span<PluginStream* const> streams,
                                                 size_t num_read, const char* what, F&& call,
                                                 const Watched& watched) {
  LockedStreams locked(streams);
  locked.prepare(num_read, what);
  return locked.finish(call(locked.handles.data()), what, watched);
}

}  // namespace tenon
