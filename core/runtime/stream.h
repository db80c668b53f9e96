// In-order queues of work. A Stream belongs to one device; a ticket is a point in it.
#pragma once

#include <cstdint>
#include <memory>

#include <tenon/core/ops/op.h>
#include <tenon/core/runtime/failure.h>
#include <tenon/core/runtime/module_path.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon {

struct PlanEntry;

// One run of a plan: pointers resolved, scalars known. Everything pointed to needs to live for the call only, but for plan and
// entry.
struct Launch {
  PlanEntry* entry;
  void* const* inputs;
  uint32_t num_inputs;
  void* const* outputs;
  uint32_t num_outputs;
  const Scalar* scalars;
  uint32_t num_scalars;
  void* workspace;
};

// A contiguous copy; `device` is the one whose plugin does it.
struct CopyTask {
  const tn_backend_api* api;
  tn_device* device;
  tn_copy copy;
  const FailureLog* source_failures = nullptr;  // of the stream that made the source
  FailureLog* target_failures = nullptr;        // of the device that owns the destination; null: the stream's own
};

class Stream {
 public:
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Each queues work and returns its ticket. Errors are kept in `failures`, never thrown here.
  virtual uint64_t run(const Launch& launch) = 0;
  virtual uint64_t copy(const CopyTask& task) = 0;
  // Work queued here from now on waits for `ticket` of `other`. May block the caller where the two cannot wait for each other.
  virtual void wait_for(Stream& other, uint64_t ticket) = 0;

  // Ticket of the last work queued so far.
  virtual uint64_t last() const = 0;
  virtual bool reached(uint64_t ticket) = 0;
  // Blocks this thread; does not throw errors of the work.
  virtual void wait(uint64_t ticket) = 0;
  // The stream as plugins of its backend know it; null for a worker's.
  virtual tn_stream* native() const { return nullptr; }

  FailureLog failures;

  // Waits, then throws the first unseen error of work up to `ticket`.
  void wait_and_throw(uint64_t ticket);

 protected:
  Stream() = default;
};

// For caller's-thread backends: a worker of its own; where the queue is empty and the work is tiny, it runs in place.
std::unique_ptr<Stream> make_worker_stream(const std::string& name);
// For backends with streams.
std::unique_ptr<Stream> make_plugin_stream(const tn_backend_api& api, tn_device* device);

// TENON_SYNC=1: every call waits and throws where it stands.
bool sync_mode();

// Shared by both kinds: runs a plan on this thread unless an input is poisoned, and files what goes wrong.
void run_and_file(FailureLog& failures, const Launch& launch, const PathNode* path, uint64_t ticket, tn_stream* stream);
void copy_and_file(FailureLog& failures, const CopyTask& task, uint64_t ticket, tn_stream* stream);

}  // namespace tenon
