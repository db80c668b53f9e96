// The stream of a backend that has streams: calls go straight to the plugin, tickets map to its
// events.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/runtime/stream.h>

namespace tenon {

class PluginStream final : public Stream, ForkMember {
 public:
  PluginStream(const tn_backend_api& api, tn_device* device, const std::string& name);
  ~PluginStream() override;

  uint64_t run(const Launch& launch) override;
  uint64_t copy(const CopyTask& task) override;
  void wait_for(Stream& other, uint64_t ticket, const void* data, uint64_t bytes) override;
  // What fails is filed when it is queued; what the device reports late names no memory.
  uint64_t forget_failed(const void* data, uint64_t bytes) override {
    if (failures.any()) failures.heal(data, bytes);
    return 0;
  }
  uint64_t last() const override { return submitted_.load(std::memory_order_acquire); }
  bool reached(uint64_t ticket) override;
  void wait(uint64_t ticket) override;
  tn_stream* native() const override { return stream_; }

  // Waits for an idle stream and starts recording for the calling thread. Until `end_capture`,
  // run() records.
  void begin_capture(const tn_stream_capture& api, Capture& capture);
  // The graph, or the plugin's error and no graph.
  tn_error* end_capture(const tn_stream_capture& api, tn_graph** graph);
  // Queues a graph; null, or why it could not be queued, filed already.
  FailureLog::Pointer replay(const tn_stream_capture& api, tn_graph* graph, uint64_t& ticket);

  // One call over several streams: `call` is given their handles while nobody else can queue on any
  // of them. Null, or the failure, filed with each. Each stream's ticket is its last() afterwards,
  // at least.
  template <class F>
  static FailureLog::Pointer queue_together(std::span<PluginStream* const> streams,
                                            const char* what, F&& call);

  // At exit: ends events and stream. Later work is refused; waiting returns at once, as nothing is
  // left to wait for.
  void close();

 private:
  struct Mark {
    uint64_t ticket;
    tn_event* event;
  };
  // What was queued lately, so that an error that the device reports late can name it.
  struct Queued {
    uint64_t ticket = 0;
    const PreparedPlan* plan = nullptr;  // with the call's shape, or
    Shape shape;
    const char* what = nullptr;
    const PathNode* path = nullptr;
  };
  // Work from ticket `first` on reads what another device's did up to `ticket`, which may turn out
  // to have failed.
  struct Source {
    PluginStream* stream;
    uint64_t ticket, first;
    bool operator==(const Source&) const = default;
  };
  class Together;

  void before_fork() override {}
  void after_fork(bool in_child) override;
  uint64_t next_ticket(const Launch* launch, const char* what);
  uint64_t record(const Launch& launch);
  void require_usable() const;
  tn_event* mark_covering(uint64_t ticket);
  tn_event* new_mark();
  void wait_locked(std::unique_lock<std::mutex>& lock, uint64_t ticket);
  void await_front(std::unique_lock<std::mutex>& lock);
  void wait_until_idle(std::unique_lock<std::mutex>& lock);
  void poll();
  void retire_front();
  void file(tn_error* error, uint64_t ticket);
  FailureLog::Pointer name_late(tn_error* error, uint64_t last) const;
  std::string in_flight(uint64_t last, const std::string& op) const;
  void give_up_if_lost();
  bool queue_wait(PluginStream& peer, uint64_t ticket, bool reads);
  void hear_of_sources(uint64_t ticket);

  const tn_backend_api& api_;
  tn_device* device_;
  tn_stream* stream_ = nullptr;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> submitted_{0}, completed_{0};  // changed under the lock
  std::deque<Mark> marks_;                             // their tickets rise
  bool awaited_ = false;             // a thread waits for the front mark, without the lock
  std::condition_variable retired_;  // completed_ rose, or nobody waits for the front mark any more
  std::vector<tn_event*> spare_;
  std::vector<Source> sources_;  // of work that nobody has waited for
  std::array<Queued, 64> ring_;
};

// Locks streams in the order of their addresses, whatever the order they come in: two threads
// cannot wait for each other.
class PluginStream::Together {
 public:
  explicit Together(std::span<PluginStream* const> streams);
  ~Together();
  void prepare(const char* what);  // DeviceError where one of them cannot be used
  std::vector<tn_stream*> handles;
  FailureLog::Pointer finish(tn_error* error, const char* what);

 private:
  std::span<PluginStream* const> streams_;
  std::vector<PluginStream*> locked_;
};

template <class F>
FailureLog::Pointer PluginStream::queue_together(std::span<PluginStream* const> streams,
                                                 const char* what, F&& call) {
  Together together(streams);
  together.prepare(what);
  return together.finish(call(together.handles.data()), what);
}

}  // namespace tenon
