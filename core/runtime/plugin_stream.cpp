// The stream of a backend that has streams: calls go straight to the plugin, tickets map to its events.
#include <tenon/core/runtime/plan_cache.h>
#include <tenon/core/runtime/stream.h>

#include <deque>
#include <mutex>
#include <vector>

namespace tenon {

namespace {

class PluginStream final : public Stream {
 public:
  PluginStream(const tn_backend_api& api, tn_device* device) : api_(api), device_(device) {
    check(api_.stream_create(device_, &stream_), "cannot create a stream: ");
  }

  ~PluginStream() override {
    for (auto& m : marks_) api_.event_destroy(m.event);
    for (auto* e : spare_) api_.event_destroy(e);
    api_.stream_destroy(stream_);
  }

  uint64_t run(const Launch& l) override {
    std::lock_guard lock(mutex_);
    run_and_file(failures, l, current_path(), ++submitted_, stream_);
    return submitted_;
  }

  uint64_t copy(const CopyTask& task) override {
    std::lock_guard lock(mutex_);
    copy_and_file(failures, task, ++submitted_, stream_);
    return submitted_;
  }

  void wait_for(Stream& other, uint64_t ticket) override {
    if (&other == this || other.reached(ticket)) return;
    auto* peer = dynamic_cast<PluginStream*>(&other);
    // Only streams of one plugin can wait for each other on the device; for any other the host has to.
    if (!peer || peer->api_.backend != api_.backend || peer->api_.stream_wait != api_.stream_wait) return other.wait(ticket);
    std::scoped_lock lock(mutex_, peer->mutex_);
    if (tn_event* event = peer->mark_covering(ticket)) file(api_.stream_wait(stream_, event), submitted_);
  }

  uint64_t last() const override {
    std::lock_guard lock(mutex_);
    return submitted_;
  }

  bool reached(uint64_t ticket) override {
    std::lock_guard lock(mutex_);
    if (completed_ >= ticket) return true;
    mark_covering(ticket);
    poll();
    return completed_ >= ticket;
  }

  void wait(uint64_t ticket) override {
    std::unique_lock lock(mutex_);
    if (completed_ >= ticket) return;
    mark_covering(ticket);
    // Oldest first, so that each mark's error is filed with its own work. The lock is held: an event must not be reused meanwhile.
    while (completed_ < ticket && !marks_.empty()) {
      file(api_.event_wait(marks_.front().event), marks_.front().ticket);
      retire_front();
    }
  }

  tn_stream* native() const override { return stream_; }

 private:
  struct Mark {
    uint64_t ticket;
    tn_event* event;
  };

  // An event that is reached after `ticket`: one recorded before, or a new one; null where it is reached already.
  tn_event* mark_covering(uint64_t ticket) {
    if (completed_ >= ticket) return nullptr;
    for (auto& m : marks_)
      if (m.ticket >= ticket) return m.event;
    tn_event* event = nullptr;
    if (spare_.empty()) {
      file(api_.event_create(device_, &event), submitted_);
    } else {
      event = spare_.back();
      spare_.pop_back();
    }
    if (!event) return nullptr;
    file(api_.event_record(event, stream_), submitted_);
    marks_.push_back({submitted_, event});
    return event;
  }

  void poll() {
    while (!marks_.empty()) {
      int32_t done = 0;
      tn_error* error = api_.event_query(marks_.front().event, &done);
      if (!error && !done) return;
      file(error, marks_.front().ticket);
      retire_front();
    }
  }

  void retire_front() {
    completed_ = marks_.front().ticket;
    spare_.push_back(marks_.front().event);
    marks_.pop_front();
  }

  void file(tn_error* error, uint64_t ticket) {
    if (error) failures.add_unseen(ticket, std::make_shared<const Failure>(take_failure(error, "queued work failed: ")));
  }

  const tn_backend_api& api_;
  tn_device* device_;
  tn_stream* stream_ = nullptr;
  mutable std::mutex mutex_;
  uint64_t submitted_ = 0, completed_ = 0;
  std::deque<Mark> marks_;
  std::vector<tn_event*> spare_;
};

}  // namespace

std::unique_ptr<Stream> make_plugin_stream(const tn_backend_api& api, tn_device* device) {
  return std::make_unique<PluginStream>(api, device);
}

}  // namespace tenon
