// A device of a plugin as the host sees it, with owners for what it makes; of an overlay, with the
// memory and the streams of the plugin below. Every failure is a Mismatch that names the call.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <tenon/conformance/check.h>
#include <tenon/conformance/compare.h>
#include <tenon/core/device.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/backend.h>

namespace tenon::conformance::joint {

inline void require(bool ok, const std::string& what) {
  if (!ok) throw Mismatch(what);
}
template <class... Args>
void require(bool ok, fmt::format_string<const Args&...> what, const Args&... args) {
  if (!ok) throw Mismatch(fmt::format(what, args...));
}
// Throws the plugin's reason.
void must(const char* call, tn_error* error);
// Returns the message of an error that has to come, with that code.
std::string must_fail(const char* call, tn_error* error, tn_code code);

struct Bench {
  // `index`: of another device of the same plugin than the subject's.
  explicit Bench(const Subject& subject, std::optional<uint32_t> index = {});
  const Subject subject;
  plugins::Backend& backend;
  const plugins::CheckedApi& api;
  tn_device* device;
  // Who makes the plans: the overlay that is checked, or the plugin of the device. Its own handle
  // stands for the device.
  plugins::Backend& planning;
  const plugins::CheckedApi& planner;
  tn_device* planner_device;
  tn_device_info info;
  bool has_streams;
  std::vector<const tn_memory_kind*> kinds;
};

class Memory {
 public:
  Memory(Bench& bench, uint64_t bytes, uint32_t kind = 0);
  ~Memory();
  Memory(const Memory&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  Bench& bench_;
  uint64_t bytes_;
  uint32_t kind_;
  void* data_ = nullptr;
};

// On a caller's-thread device it is no stream, and everything is done at once.
class Stream {
 public:
  explicit Stream(Bench& bench);
  ~Stream();
  Stream(const Stream&) = delete;
  tn_stream* handle() const { return handle_; }
  // One of the pointers may be the host's.
  void copy(void* to, const void* from, uint64_t bytes, bool to_device, bool from_device);
  // From the memory of another device of the plugin.
  void copy_from(const Bench& other, void* to, const void* from, uint64_t bytes);
  void upload(const Memory& to, const std::vector<float>& values);
  std::vector<float> download(const Memory& from, size_t count);
  void wait();

 private:
  Bench& bench_;
  tn_stream* handle_ = nullptr;
  // What copies read and write lives as long as the stream: a plugin may not wait as it should.
  std::deque<std::vector<float>> kept_;
};

class Event {
 public:
  explicit Event(Bench& bench);
  ~Event();
  Event(const Event&) = delete;
  void record(const Stream& stream);
  bool is_reached();
  void wait();
  tn_event* handle() const { return handle_; }

 private:
  Bench& bench_;
  tn_event* handle_ = nullptr;
};

// An operator that is tried, what it makes of -2 and of 0, "abs" and 2 and 0, and the core's
// function for it, of tensors of one dimension.
struct Operator {
  enum Form { pointwise, pooling, product };
  const char* name;
  float of_minus_two;
  std::function<Tensor(const Tensor&)> call;
  Form form = pointwise;
  int64_t count = 1031;  // of elements for which plans are made
  float of_zero = 0;
  std::span<const tn_attr> attrs = {};
  // The next number of elements that it can have.
  int64_t at_least(int64_t elements) const;
};
// The one that the subject is to be tried with, or the first that the planner accepts.
// Throws an UnsupportedError if it accepts none that is known here.
Operator known_operator(Bench& bench);
// The one that the subject names.
Operator tried_operator(Bench& bench);

// A request for an operator that computes each element from the one at its place. All tensors are
// contiguous; a product has a second input, the unit matrix.
std::vector<float> unit_matrix();
struct Request {
  Request(const char* op, int64_t count, tn_dtype dtype = TN_F32);
  Request(const Operator& op, int64_t count, tn_dtype dtype = TN_F32);
  Request(const Request&) = delete;
  tn_tensor_desc in, factor, out;
  const tn_tensor_desc* inputs[2];
  const tn_tensor_desc* outputs[1];
  std::vector<const tn_attr*> attrs;
  tn_op_request raw;
  const tn_op_request* get();
};

// A run, and the arrays to which it points, which are the plan's for the call alone.
struct Arguments {
  void* inputs[2];
  void* outputs[1];
  tn_run run;
  unsigned char more[64];  // what a newer host has
};

class Plan {
 public:
  Plan(Bench& bench, const tn_op_request* request);
  ~Plan();
  Plan(const Plan&) = delete;
  void run(const Stream& stream, const Memory& in, const Memory& out) {
    run(stream, in.data(), out.data());
  }
  void run(const Stream& stream, void* in, void* out) {
    Arguments own;
    run(own, stream, in, out);
  }
  // With arguments that the caller may change afterwards.
  void run(Arguments& own, const Stream& stream, void* in, void* out);

 private:
  Bench& bench_;
  tn_plan* plan_ = nullptr;
  std::unique_ptr<Memory> workspace_, factor_;
};

}  // namespace tenon::conformance::joint
