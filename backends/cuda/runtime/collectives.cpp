// The extension tn.collectives: NCCL over devices of one process.
#include <memory>
#include <string>
#include <vector>

#include "runtime/check.h"
#include "runtime/device.h"
#include "runtime/runtime.h"
#include "vendor/library.h"

struct tn_communicator {
  std::vector<tn_device*> devices;
  std::vector<ncclComm_t> members;
  bool grouped = false;  // between group_begin and group_end
};

namespace tenon::cuda {

namespace {

ncclDataType_t nccl_type(tn_dtype dtype) {
  switch (dtype) {
    case TN_F32:
      return ncclFloat32;
    case TN_F64:
      return ncclFloat64;
    case TN_F16:
      return ncclFloat16;
    case TN_BF16:
      return ncclBfloat16;
    case TN_I64:
      return ncclInt64;
    case TN_I32:
      return ncclInt32;
    case TN_U8:
      return ncclUint8;
    default:
      sdk::unsupported(std::string("NCCL does not reduce ") + sdk::dtype_name(dtype));
  }
}

ncclRedOp_t nccl_op(tn_reduce_op op) {
  switch (op) {
    case TN_REDUCE_SUM:
      return ncclSum;
    case TN_REDUCE_MAX:
      return ncclMax;
    case TN_REDUCE_MIN:
      return ncclMin;
    default:
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT, sdk::text("there is no reduction {}", op));
  }
}

// NCCL itself finds the same GPU twice only after it has started threads for both.
void refuse_twice(const std::vector<tn_device*>& devices) {
  for (size_t i = 0; i < devices.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (devices[i]->ordinal == devices[j]->ordinal)
        sdk::unsupported("NCCL cannot join device {} with itself", devices[i]->ordinal);
}

tn_error* communicator_create(tn_backend*, tn_device* const* devices, size_t count,
                              tn_communicator** out) {
  return sdk::guard([&] {
    auto joined = std::make_unique<tn_communicator>();
    joined->devices.assign(devices, devices + count);
    refuse_twice(joined->devices);
    CurrentDevice current(devices[0]);
    std::vector<int> ordinals;
    for (auto* d : joined->devices) ordinals.push_back(d->ordinal);
    joined->members.resize(count);
    check(nccl().ncclCommInitAll(joined->members.data(), static_cast<int>(count), ordinals.data()),
          sdk::text("joining {} devices", count));
    *out = joined.release();
  });
}

void communicator_destroy(tn_communicator* c) {
  if (ending()) {  // NCCL may have ended before: the members go with the process
    static auto& left = *new std::vector<tn_communicator*>;
    return left.push_back(c);
  }
  tn_error* error = sdk::guard([&] {
    for (auto member : c->members) {
      ncclResult_t state = ncclSuccess;
      // Destroying waits for what is under way, which never ends where something failed.
      const bool sound =
          nccl().ncclCommGetAsyncError(member, &state) == ncclSuccess && state == ncclSuccess;
      sound ? nccl().ncclCommDestroy(member) : nccl().ncclCommAbort(member);
    }
  });
  if (error) error->destroy(error);
  delete c;
}

void check_members(const tn_communicator& c) {
  for (size_t i = 0; i < c.members.size(); ++i) {
    ncclResult_t state = ncclSuccess;
    check(nccl().ncclCommGetAsyncError(c.members[i], &state), "ncclCommGetAsyncError");
    if (state != ncclSuccess && state != ncclInProgress)
      check(state, sdk::text("a collective on device {}", c.devices[i]->ordinal));
  }
}

// queue(i) for each member as one call of NCCL's. The group is ended in every case: NCCL's state is
// the thread's.
template <class F>
void each_member(tn_communicator& c, const char* what, F queue) {
  CurrentDevice current(c.devices[0]);
  auto& api = nccl();
  check(api.ncclGroupStart(), "ncclGroupStart");
  ncclResult_t first = ncclSuccess;
  for (size_t i = 0; i < c.members.size() && first == ncclSuccess; ++i) first = queue(i);
  const ncclResult_t ended = api.ncclGroupEnd();
  check(first, what);
  check(ended, what);
}

tn_error* all_reduce(tn_communicator* c, const void* const* inputs, void* const* outputs,
                     uint64_t elements, tn_dtype dtype, tn_reduce_op op,
                     tn_stream* const* streams) {
  return sdk::guard([&] {
    const auto type = nccl_type(dtype);
    const auto reduction = nccl_op(op);
    if (!elements) return;
    each_member(*c, "ncclAllReduce", [&](size_t i) {
      return nccl().ncclAllReduce(inputs[i], outputs[i], elements, type, reduction, c->members[i],
                                  streams[i]->handle);
    });
  });
}

// Any type: only bytes move.
tn_error* broadcast(tn_communicator* c, void* const* buffers, uint64_t elements, tn_dtype dtype,
                    uint32_t root, tn_stream* const* streams) {
  return sdk::guard([&] {
    if (root >= c->members.size())
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT,
                       sdk::text("broadcast from member {} of {}", root, c->members.size()));
    const uint64_t bytes = elements * sdk::dtype_size(dtype);
    if (!bytes) return;
    each_member(*c, "ncclBroadcast", [&](size_t i) {
      return nccl().ncclBroadcast(buffers[i], buffers[i], bytes, ncclUint8, static_cast<int>(root),
                                  c->members[i], streams[i]->handle);
    });
  });
}

tn_error* group_begin(tn_communicator* c) {
  return sdk::guard([&] {
    if (c->grouped) throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "groups of collectives do not nest");
    check_members(*c);
    check(nccl().ncclGroupStart(), "ncclGroupStart");
    c->grouped = true;
  });
}

tn_error* group_end(tn_communicator* c) {
  return sdk::guard([&] {
    if (!c->grouped)
      throw sdk::Error(TN_CODE_INVALID_ARGUMENT, "no group of collectives was begun");
    c->grouped = false;
    CurrentDevice current(c->devices[0]);
    check(nccl().ncclGroupEnd(), "ncclGroupEnd");
  });
}

}  // namespace

const tn_collectives collectives{sizeof(tn_collectives),
                                 communicator_create,
                                 communicator_destroy,
                                 all_reduce,
                                 broadcast,
                                 group_begin,
                                 group_end};

}  // namespace tenon::cuda
