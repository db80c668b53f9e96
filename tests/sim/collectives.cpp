// Sums and broadcasts: the streams of all members meet, the last one to come does the work for all.
// Where two streams met in another order than two others, all would wait for ever, as on a GPU.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "sim.h"

using tenon::sdk::Error;
using tenon::sdk::guard;

struct tn_communicator : tenon::sim::Counted {
  std::vector<tn_device*> devices;
  bool grouping = false;
  std::vector<std::function<void()>> calls;  // of the group
  std::vector<tn_stream*> streams;
};

namespace tenon::sim {

namespace {

struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  size_t missing;
  bool done = false;
  std::vector<std::function<void()>> calls;
};

void launch(tn_communicator& c) {
  if (c.calls.empty()) return;
  ++counters.joint_launches;
  auto meeting = std::make_shared<Meeting>();
  meeting->missing = c.devices.size();
  meeting->calls = std::exchange(c.calls, {});
  for (auto* stream : c.streams)
    stream->push([meeting] {
      std::unique_lock lock(meeting->mutex);
      if (--meeting->missing == 0) {
        for (auto& call : meeting->calls) call();
        meeting->done = true;
        meeting->changed.notify_all();
      }
      meeting->changed.wait(lock, [&] { return meeting->done; });
    });
}

void add(tn_communicator& c, tn_stream* const* streams, std::function<void()> call) {
  std::vector<tn_stream*> given(streams, streams + c.devices.size());
  for (size_t i = 0; i < given.size(); ++i) {
    require_not_capturing(given[i], "a collective");
    require_working(given[i]->device);
    if (given[i]->device != c.devices[i])
      throw Error(TN_CODE_INVALID_ARGUMENT, "a stream of another device");
  }
  if (c.grouping && !c.calls.empty() && given != c.streams)
    throw Error(TN_CODE_INVALID_ARGUMENT, "a group over other streams");
  ++counters.joint_calls;
  c.streams = std::move(given);
  c.calls.push_back(std::move(call));
  if (!c.grouping) launch(c);
}

template <class T>
void sum(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, uint64_t n) {
  std::vector<T> total(n, T(0));
  for (auto* input : inputs)
    for (uint64_t i = 0; i < n; ++i)
      total[i] = static_cast<T>(total[i] + static_cast<const T*>(input)[i]);
  for (auto* output : outputs) std::memcpy(output, total.data(), n * sizeof(T));
}

void require_there(const tn_communicator& c, const void* const* members, uint64_t bytes) {
  for (size_t i = 0; i < c.devices.size(); ++i)
    if (!is_device_memory(members[i], bytes))
      throw Error(TN_CODE_INVALID_ARGUMENT, "a member is not device memory");
}

tn_error* all_reduce(tn_communicator* c, const void* const* inputs, void* const* outputs,
                     uint64_t n, tn_dtype dtype, tn_reduce_op op, tn_stream* const* streams) {
  return guard([&] {
    if (op != TN_REDUCE_SUM) sdk::unsupported("only sums");
    auto* body = dtype == TN_F32   ? sum<float>
                 : dtype == TN_F64 ? sum<double>
                 : dtype == TN_I64 ? sum<int64_t>
                                   : nullptr;
    if (!body) sdk::unsupported(std::string("no sums of ") + sdk::dtype_name(dtype));
    require_there(*c, inputs, n * sdk::dtype_size(dtype));
    require_there(*c, outputs, n * sdk::dtype_size(dtype));
    std::vector<const void*> in(inputs, inputs + c->devices.size());
    std::vector<void*> out(outputs, outputs + c->devices.size());
    add(*c, streams, [=] { body(in, out, n); });
  });
}

tn_error* broadcast(tn_communicator* c, void* const* buffers, uint64_t n, tn_dtype dtype,
                    uint32_t root, tn_stream* const* streams) {
  return guard([&] {
    const uint64_t bytes = n * sdk::dtype_size(dtype);
    require_there(*c, buffers, bytes);
    std::vector<void*> all(buffers, buffers + c->devices.size());
    add(*c, streams, [=] {
      for (auto* b : all)
        if (b != all[root]) std::memcpy(b, all[root], bytes);
    });
  });
}

tn_error* communicator_create(tn_backend*, tn_device* const* devices, size_t count,
                              tn_communicator** out) {
  return guard([&] {
    if (std::set<tn_device*>(devices, devices + count).size() < count)
      sdk::unsupported("a device is given twice");
    if (std::getenv("TENON_SIM_NO_LINK"))
      throw Error(TN_CODE_UNAVAILABLE, "TENON_SIM_NO_LINK is set");
    auto c = std::make_unique<tn_communicator>();
    c->devices.assign(devices, devices + count);
    *out = c.release();
  });
}

}  // namespace

const tn_collectives collectives{
    sizeof(tn_collectives),
    communicator_create,
    [](tn_communicator* c) { delete c; },
    all_reduce,
    broadcast,
    [](tn_communicator* c) -> tn_error* { return c->grouping = true, nullptr; },
    [](tn_communicator* c) {
      return guard([&] {
        c->grouping = false;
        launch(*c);
      });
    }};

}  // namespace tenon::sim
