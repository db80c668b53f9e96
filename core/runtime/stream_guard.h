// Several streams on one device, with which independent work on it may overlap.
#pragma once

#include <memory>

#include <tenon/core/api.h>
#include <tenon/core/device.h>

namespace tenon {

// A further stream of a device, beside the one on which all else runs: a queue, and memory that is
// reused in its order (torch.cuda.Stream). Copies of it are the same stream. It may be destroyed
// while its work is still queued; the work is done all the same, and a later Stream of the device
// may get its queue.
//
//   Stream second("cuda:0");
//   Tensor a = f(x);
//   {
//     StreamGuard guard(second);
//     b = g(y);         // while f is computed
//   }
//   Tensor c = a + b;   // waits for both
class TENON_API Stream {
 public:
  // Opens a stream of the device. Throws a DeviceError if there is no such device, if it was lost,
  // or if 64 of its streams are in use. With TENON_CHECK=1, work is done in order, and this is the
  // first stream of the device.
  explicit Stream(Device device = default_device());
  // Returns the device to which the stream belongs.
  Device device() const;
  // Returns whether all that was queued on it is done, without waiting.
  bool query() const;
  // Waits for all that was queued on it. Throws the first error of queued work of the device that
  // was not reported yet.
  void synchronize() const;

 private:
  friend class StreamGuard;
  std::shared_ptr<DeviceContext> context_;
};

// While it lives, this thread queues its work on the device of the stream there (c10::StreamGuard):
// operators, copies, changes in place and what the backward pass makes of them, whoever calls
// `backward`. Nothing else is needed: work that reads or overwrites what another stream computes
// waits for it, and so does a thread that reads a value. Work on other devices, and the device on
// which factories make tensors, are as before. Guards may be nested, and end in the opposite order.
// They have no effect while a StreamGraph of the device is captured, nor in a call of a compiled
// function that is recorded or replayed: that runs on the first stream, steps of optimizers too.
class TENON_API StreamGuard {
 public:
  // Begins the scope.
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream stream_;
  detail::DeviceScope scope_;
};

}  // namespace tenon
