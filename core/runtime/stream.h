// In-order queues of work. A Stream belongs to one device; a ticket is a point in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include <tenon/core/base/module_path.h>
#include <tenon/core/runtime/failure.h>
#include <tenon/core/runtime/prepared_plan.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

class Capture;

// One run of a plan: pointers resolved, scalars known. Everything pointed to needs to live for the
// call only, except for the plan.
struct Launch {
  const PreparedPlan* plan;
  void* const* inputs;
  uint32_t num_inputs;
  void* const* outputs;
  uint32_t num_outputs;
  const tn_scalar* scalars;
  uint32_t num_scalars;
  void* workspace;
  bool outputs_hold_values = false;  // from before: they keep them where this is skipped
  const Shape* shape = nullptr;      // of all tensors, where the plan is flattened
};

// A contiguous copy; `device` is the one whose plugin does it.
struct CopyTask {
  const tn_backend_api* api;
  tn_device* device;
  tn_copy copy;
  const FailureLog* source_failures = nullptr;  // of the stream that made the source
  FailureLog* target_failures =
      nullptr;  // of the device that owns the destination; null: the stream's own
};

class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Each queues work and returns its ticket. Errors of the work are kept in `failures`. DeviceError
  // where nothing can be queued: the device is lost, or another thread captures its work.
  virtual uint64_t run(const Launch& launch) = 0;
  virtual uint64_t copy(const CopyTask& task) = 0;
  // Work queued here from now on waits for `ticket` of `other`. May block the caller where the two
  // cannot wait for each other. Where work here is to read what `other` writes, `data` and `bytes`
  // are the memory that it goes to, which is not read as sound here if that fails late. Without
  // them nothing is read, as before memory is written again: no failure of `other` is heard of.
  virtual void wait_for(Stream& other, uint64_t ticket, const void* data = nullptr,
                        uint64_t bytes = 0) = 0;

  // Memory has a new owner, who may read it before it is written: what failed there before is
  // forgotten, once the work is done that is queued so far. The ticket of that, or 0 where it is
  // done.
  virtual uint64_t forget_failed(const void* data, uint64_t bytes) = 0;

  // Ticket of the last work queued so far.
  virtual uint64_t last() const = 0;
  virtual bool reached(uint64_t ticket) = 0;
  // Blocks this thread; does not throw errors of the work.
  virtual void wait(uint64_t ticket) = 0;
  // The stream as plugins of its backend know it; null for a worker's.
  virtual tn_stream* native() const { return nullptr; }

  FailureLog failures;

  // Null, or why the device can do nothing more in this process: "the program is ending". Its
  // memory is then nobody's concern.
  const char* closed() const { return closed_.load(std::memory_order_acquire); }
  // DeviceError where it is closed: before the plugin is asked for anything but queued work.
  void require_open() const {
    if (auto* why = closed()) refuse_closed(why);
  }

  // DeviceError with what happened first, where the device is lost.
  void require_device() const {
    if (failures.any())
      if (auto f = failures.lost()) throw_failure(*f);
  }

  // While a thread captures what it queues here (core/runtime/stream_graph.h), nothing runs and
  // nothing can be waited for.
  bool capturing() const {
    return capturing_thread_.load(std::memory_order_acquire) != std::thread::id();
  }
  // The capture of the calling thread, or null.
  Capture* own_capture() const {
    const auto thread = capturing_thread_.load(std::memory_order_acquire);
    return thread != std::thread::id() && thread == std::this_thread::get_id() ? capture_ : nullptr;
  }
  // DeviceError "<what> while …" where any thread captures.
  void refuse_while_capturing(const char* what) const {
    if (capturing()) refuse(what);
  }

  // Waits for the value at `data`, which `ticket` wrote, and throws what went wrong with it; other
  // errors are others'.
  void wait_for_value(uint64_t ticket, const void* data, const Footprint& footprint);
  // Waits for the call with this ticket and throws its error.
  void wait_for_call(uint64_t ticket);
  // Waits for all work and throws the first error that nobody was told of.
  void wait_for_all();

 protected:
  explicit Stream(std::string name) : name_(std::move(name)) {}
  [[noreturn]] void refuse(const char* what) const;
  [[noreturn]] void refuse_closed(const char* why) const;
  // In the child of a fork: what nobody was told of is for the parent to tell. Values that were
  // never made stay unreadable.
  void forget_failures();

  const std::string name_;  // of the device
  std::atomic<std::thread::id> capturing_thread_{};
  Capture* capture_ = nullptr;  // only the capturing thread looks at it
  std::atomic<const char*> closed_{nullptr};
};

// For caller's-thread backends: a worker of its own; where the queue is empty and the work is tiny,
// it runs in place.
std::unique_ptr<Stream> make_worker_stream(const std::string& name);
// For backends with streams.
std::unique_ptr<Stream> make_plugin_stream(const tn_backend_api& api, tn_device* device,
                                           const std::string& name);

// TENON_SYNC=1: every call waits and throws where it stands.
bool sync_mode();

// Why an input of the launch was never made, or null.
FailureLog::Pointer poisoned_input(const FailureLog& failures, const Launch& launch);
// Shared by both kinds: runs a plan on this thread unless an input is poisoned, and files what goes
// wrong. Skipped work leaves what it would have changed in place as it was; work that fails leaves
// nobody knows what.
void run_and_file(FailureLog& failures, const Launch& launch, const PathNode* path, uint64_t ticket,
                  tn_stream* stream);
void copy_and_file(FailureLog& failures, const CopyTask& task, uint64_t ticket, tn_stream* stream);

}  // namespace tenon
