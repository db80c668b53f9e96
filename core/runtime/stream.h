// Queues of work that run in order. A DeviceStream belongs to one device, and a ticket is a
// position in it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include <tenon/core/base/module_path.h>
#include <tenon/core/runtime/failure.h>
#include <tenon/core/runtime/prepared_plan.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/checked_api.h>

namespace tenon {

class Capture;
class DeviceContext;
namespace observe {
struct DeviceWork;
}
namespace checked {
class Memory;
}

// One run of a plan, with its pointers and scalars. Except for the plan, everything it points to
// has to live only during the call.
struct Launch {
  const PreparedPlan* plan;
  void* const* inputs;
  uint32_t num_inputs;
  void* const* outputs;
  uint32_t num_outputs;
  const tn_scalar* scalars;
  uint32_t num_scalars;
  void* workspace;
  bool outputs_hold_values = false;          // the outputs keep their old values if this is skipped
  const Shape* shape = nullptr;              // the shape of all tensors, if the plan is flattened
  const uint64_t* input_versions = nullptr;  // as in tn_run
  int64_t queued_ns = 0;                     // while a profiler records; else 0
  bool spoils_in_place = false;  // if this is skipped, what it changes has no value, either
  // Where those who watch note what they call it, if they will hear when the device did it.
  observe::DeviceWork* device_work = nullptr;

  // What the plugin gets to see of it.
  tn_run args(tn_stream* stream) const {
    return {sizeof(tn_run), inputs,        outputs,    num_scalars ? scalars : nullptr,
            workspace,      stream,        num_inputs, num_outputs,
            num_scalars,    input_versions};
  }
};

// A copy of contiguous values, which the plugin of `device` makes.
struct CopyTask {
  const plugins::CheckedApi* api;
  tn_device* device;
  tn_copy copy;
  const FailureLog* source_failures = nullptr;  // of the stream that wrote the source
  FailureLog* target_failures =
      nullptr;  // of the device that owns the destination; null for the log of this stream
  // In checked mode, whose guards are around the source and the destination; null if neither is
  // memory of the core.
  checked::Memory *source = nullptr, *target = nullptr;
  const DeviceContext* by = nullptr;  // that of the stream
  // What is said of it in checked mode. A side without a device is memory of the host.
  struct Asked {
    DType dtype = f32;
    std::optional<Device> from = {}, to = {};
    const PathNode* path = current_path();  // the module that asked for it
  } asked = {};
  int64_t queued_ns = 0;                       // as in Launch
  observe::DeviceWork* device_work = nullptr;  // as in Launch
};

// Several launches that are queued as one piece of work. It has to live until that is done. Each
// run of a stream begins with `prepare`, on the thread that runs it, which may change the launches.
class LaunchSequence {
 public:
  virtual ~LaunchSequence() = default;
  virtual void prepare() noexcept = 0;
  virtual std::span<const Launch> launches() const = 0;
  // Called before each launch, if anything on the stream has failed and was not forgotten.
  virtual void forget(FailureLog& failures, size_t launch) const = 0;
  virtual const PathNode* path(size_t launch) const = 0;
  uint64_t cost_ns = 0;  // of all of them; 0 if unknown
};

class DeviceStream {
  const std::unique_ptr<FailureLog> own_failures_;

 public:
  virtual ~DeviceStream() = default;
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  // These queue work and return its ticket. Errors of the work are kept in `failures`. They throw a
  // DeviceError if nothing can be queued, because the device is lost or another thread captures its
  // work.
  virtual uint64_t run(const Launch& launch) = 0;
  virtual uint64_t copy(const CopyTask& task) = 0;
  // Queues all launches, in their order, and returns the ticket of the last.
  virtual uint64_t run_all(LaunchSequence& sequence);
  // Work that is queued here from now on waits for `ticket` of `other`. This may block the caller
  // if the streams cannot wait for each other. If work here will read what `other` writes, pass
  // that memory as `data` and `bytes`, so that a late failure of `other` also counts here. Without
  // them the work reads nothing of `other`, as when it overwrites memory, and no failure of `other`
  // is passed on.
  virtual void wait_for(DeviceStream& other, uint64_t ticket, const void* data = nullptr,
                        uint64_t bytes = 0) = 0;

  // The same, for memory of `other` that work here changes or reads where it lies: whether its
  // values were computed is then known here, too. Returns the ticket of that, or 0 if it is known
  // already that they were.
  virtual uint64_t take_over(DeviceStream& other, uint64_t ticket, const void* data,
                             uint64_t bytes) = 0;

  // Forgets failures of memory that has a new owner, who may read it before it is written. This
  // happens after the work that is queued so far. Returns the ticket of that, or 0 if it is done.
  virtual uint64_t forget_failed(const void* data, uint64_t bytes) = 0;

  // Returns the ticket of the last work that was queued.
  virtual uint64_t last() const = 0;
  virtual bool reached(uint64_t ticket) = 0;
  // The same, and if so, all is known that can be wrong with it: `failures` has what other devices
  // reported late of the values that this work read. Like reached(), it waits for no device.
  virtual bool settled(uint64_t ticket) { return reached(ticket); }
  // Blocks this thread until the ticket is reached. It does not throw errors of the work.
  virtual void wait(uint64_t ticket) = 0;
  // Returns the handle that plugins of its backend use; null for a worker stream.
  virtual tn_stream* native() const { return nullptr; }

  // The number of the stream with this ticket in its device.
  static constexpr uint32_t number_of(uint64_t ticket) {
    return static_cast<uint32_t>(ticket >> kTicketBits);
  }
  // The ticket before that of its first work.
  uint64_t origin() const { return origin_; }

  // All streams of a device have one log, so each knows which memory was never written.
  FailureLog& failures;

  // Returns null, or the reason why the device cannot be used any more in this process, such as
  // "the program is ending". Its memory is not managed any more then.
  const char* closed() const { return closed_.load(std::memory_order_acquire); }
  // Throws a DeviceError if the stream is closed. Call it before you ask the plugin for anything
  // that is not queued work.
  void require_open() const {
    if (auto* why = closed()) refuse_closed(why);
  }

  // Throws the first error of the device as a DeviceError if the device is lost.
  void require_device() const {
    if (failures.any())
      if (auto f = failures.take_lost()) throw_failure(*f);
  }
  // Throws the error of a call to the plugin that is no queued work, unless it is null, and
  // destroys it. If it says that the device is lost, every later call fails with it.
  void require(tn_error* error, const std::string& prefix);

  // While a thread captures what it queues here (core/runtime/stream_graph.h), nothing runs, and
  // nothing can be waited for.
  bool capturing() const {
    return capturing_thread_.load(std::memory_order_acquire) != std::thread::id();
  }
  // Returns the capture of the calling thread, or null.
  Capture* own_capture() const {
    const auto thread = capturing_thread_.load(std::memory_order_acquire);
    return thread != std::thread::id() && thread == std::this_thread::get_id() ? capture_ : nullptr;
  }
  // Throws the DeviceError "<what> while …" if any thread captures.
  void refuse_while_capturing(const char* what) const {
    if (capturing()) refuse(what);
  }

  // Waits as wait() does, for a reader of values; the trace and profilers show it.
  void wait_and_watch(uint64_t ticket);
  // Waits for the value at `data`, which `ticket` wrote, and throws the error that affected it, but
  // no other error.
  void wait_for_value(uint64_t ticket, const void* data, const Footprint& footprint);
  // Waits for the call with this ticket and throws its error.
  void wait_for_call(uint64_t ticket);
  // Throws a failure that the device reported late, while other threads were told of it, if it may
  // have affected what `ticket` wrote. For who is about to use that value; it waits for nothing.
  void tell_of(uint64_t ticket) {
    if (failures.may_be_told(ticket)) [[unlikely]]
      if (auto f = failures.take_told(ticket)) throw_failure(*f);
  }
  // Waits for all work and throws the first error that was not reported yet.
  void wait_for_all();

 protected:
  // `shared` is the log of the device; null for its first stream, which makes it.
  DeviceStream(std::string name, uint32_t number, FailureLog* shared)
      : own_failures_(shared ? nullptr : std::make_unique<FailureLog>()),
        failures(shared ? *shared : *own_failures_),
        name_(std::move(name)),
        origin_(uint64_t{number} << kTicketBits) {}
  [[noreturn]] void refuse(const char* what) const;
  [[noreturn]] void refuse_closed(const char* why) const;
  // Called in the child of a fork. Failures that were not reported yet are for the parent to
  // report. Values that were never computed cannot be read in the child either.
  void forget_failures();

  const std::string name_;  // as of its DeviceContext
  const uint64_t origin_;
  std::atomic<std::thread::id> capturing_thread_{};
  Capture* capture_ = nullptr;  // used only by the capturing thread
  std::atomic<const char*> closed_{nullptr};
};

// The stream of backends that compute on the thread of the caller. It has a worker thread; if the
// queue is empty and the work is short, the caller runs it.
std::unique_ptr<DeviceStream> make_worker_stream(const std::string& name, uint32_t number = 0,
                                                 FailureLog* shared = nullptr);
// The stream of backends that have streams.
std::unique_ptr<DeviceStream> make_plugin_stream(const plugins::CheckedApi& api, tn_device* device,
                                                 const std::string& name, uint32_t number = 0,
                                                 FailureLog* shared = nullptr);

// True if TENON_SYNC=1 is set: every call waits for its work and throws its error.
bool sync_mode();

// Returns why an input of the launch was never computed, or null.
FailureLog::Pointer poisoned_input(const FailureLog& failures, const Launch& launch);
// Both kinds of streams use these. They run a plan or a copy on this thread unless an input is
// poisoned, and log errors. If the work is skipped, memory that it would have changed in place
// keeps its old values. If the work fails, the contents of that memory are unknown.
void run_and_log(FailureLog& failures, const Launch& launch, const PathNode* path, uint64_t ticket,
                 tn_stream* stream);
void run_and_log(FailureLog& failures, LaunchSequence& sequence, uint64_t ticket);
void copy_and_log(FailureLog& failures, const CopyTask& task, uint64_t ticket, tn_stream* stream);

}  // namespace tenon
