// Stands in for NCCL: the functions that the plugin calls, over memory that the host can reach. As
// with NCCL, the members of one process queue their parts within a group. At the end of the
// outermost one they are put on their streams; a collective runs when the last of them comes to it,
// and the streams of the others wait until then.
//
// TENON_EMULATED_NCCL_FAIL=call: what is queued fails; =later: members say that something has gone
// wrong before.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nccl.h>

#include "nccl_counters.h"
#include "stream.h"

extern "C" {
tenon::emulated::NcclCounters tenon_emulated_nccl_counters{};
}

namespace {

auto& counters = tenon_emulated_nccl_counters;

bool fails(const char* how) {
  const char* asked = std::getenv("TENON_EMULATED_NCCL_FAIL");
  return asked && std::strcmp(asked, how) == 0;
}

struct Join {
  int members;
};

struct Part {
  ncclComm_t member;
  bool broadcast;
  const void* in;
  void* out;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  cudaStream_t stream;
};

thread_local int depth = 0;
thread_local std::vector<Part> queued;
thread_local ncclResult_t group_error =
    ncclSuccess;  // the first; nothing of the group is done then

}  // namespace

struct ncclComm {
  Join* join;
  int rank, device;
};

namespace {

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
    case ncclInt64:
      return 8;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclUint8:
      return 1;
    default:
      return 0;
  }
}

// Half types are summed as float, each sum rounded.
template <class T, class Wide = T>
void reduce(const std::vector<Part>& parts) {
  const size_t n = parts[0].count;
  std::vector<T> total(static_cast<const T*>(parts[0].in), static_cast<const T*>(parts[0].in) + n);
  for (size_t m = 1; m < parts.size(); ++m) {
    auto* x = static_cast<const T*>(parts[m].in);
    for (size_t i = 0; i < n; ++i) {
      const auto a = static_cast<Wide>(total[i]), b = static_cast<Wide>(x[i]);
      total[i] = static_cast<T>(parts[0].op == ncclSum   ? a + b
                                : parts[0].op == ncclMax ? std::max(a, b)
                                                         : std::min(a, b));
    }
  }
  for (auto& p : parts) std::memcpy(p.out, total.data(), n * sizeof(T));
}

using Reduce = void (*)(const std::vector<Part>&);

Reduce reduce_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat64:
      return reduce<double>;
    case ncclFloat32:
      return reduce<float>;
    case ncclInt64:
      return reduce<int64_t>;
    case ncclInt32:
      return reduce<int32_t>;
    case ncclFloat16:
      return reduce<__half, float>;
    case ncclBfloat16:
      return reduce<__nv_bfloat16, float>;
    case ncclUint8:
      return reduce<uint8_t>;
    default:
      return nullptr;
  }
}

void broadcast(const std::vector<Part>& parts) {
  auto& first = parts[0];
  auto* from = static_cast<const char*>(parts[static_cast<size_t>(first.root)].in);
  const std::vector<char> values(from, from + first.count * size_of(first.type));
  for (auto& p : parts) std::memcpy(p.out, values.data(), values.size());
}

// One collective: a part of every member, which agree about it.
ncclResult_t put_on_streams(const std::vector<Part>& parts) {
  auto& first = parts[0];
  for (auto& p : parts)
    if (p.stream->is_capturing(p.stream) || p.stream->device != p.member->device ||
        p.broadcast != first.broadcast || p.count != first.count || p.type != first.type ||
        p.root != first.root)
      return ncclInvalidUsage;
  const Reduce work = first.broadcast ? broadcast : reduce_of(first.type);
  if (!work) return ncclInvalidArgument;
  auto arrived = std::make_shared<size_t>(0);
  auto done = std::make_shared<bool>(false);
  for (auto& p : parts) {
    const auto code = p.stream->queue(p.stream, [=] {
      if (++*arrived < parts.size()) return;
      work(parts);
      *done = true;
    });
    if (code != cudaSuccess || p.stream->wait_for(p.stream, done) != cudaSuccess)
      return ncclUnhandledCudaError;
  }
  return ncclSuccess;
}

// The k-th call of each member belongs together.
ncclResult_t run_all(std::vector<Part> parts) {
  std::map<Join*, std::map<int, std::vector<Part>>> by_member;
  for (auto& p : parts) by_member[p.member->join][p.member->rank].push_back(p);
  for (auto& [join, ranks] : by_member) {
    if (static_cast<int>(ranks.size()) != join->members) return ncclInvalidUsage;
    const size_t calls = ranks.begin()->second.size();
    for (size_t k = 0; k < calls; ++k) {
      std::vector<Part> together;
      for (auto& [rank, list] : ranks) {
        if (list.size() != calls) return ncclInvalidUsage;
        together.push_back(list[k]);
      }
      ++counters.calls;
      if (auto result = put_on_streams(together); result != ncclSuccess) return result;
    }
  }
  return ncclSuccess;
}

ncclResult_t queue(const Part& part) {
  if (!depth) return ncclInvalidUsage;  // alone it would wait for the others for ever
  const auto result = !size_of(part.type) || !part.stream ? ncclInvalidUsage
                      : fails("call")                     ? ncclSystemError
                                                          : ncclSuccess;
  if (group_error == ncclSuccess) group_error = result;
  if (result != ncclSuccess) return result;
  queued.push_back(part);
  return ncclSuccess;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION(2, 28, 0), ncclSuccess; }
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclInvalidUsage  ? "invalid usage"
         : result == ncclSystemError ? "a system call failed"
         : result == ncclRemoteError ? "a peer has failed"
                                     : "error";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclCommInitAll(ncclComm_t* members, int count, const int* devices) {
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < i; ++j)
      if (devices[i] == devices[j]) return ncclInvalidUsage;
  ++counters.joins;
  auto* join = new Join{count};
  for (int i = 0; i < count; ++i) members[i] = new ncclComm{join, i, devices[i]};
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t member) {
  if (--member->join->members == 0) delete member->join;
  return delete member, ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t member) {
  if (fails("later")) return ncclInternalError;  // it would wait for ever
  return ncclCommAbort(member);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  return *state = fails("later") ? ncclRemoteError : ncclSuccess, ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  auto parts = std::move(queued);
  queued.clear();
  if (auto error = std::exchange(group_error, ncclSuccess); error != ncclSuccess || parts.empty())
    return error;
  ++counters.launches;
  return run_all(std::move(parts));
}
ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t member, cudaStream_t stream) {
  return queue({member, false, in, out, count, type, op, 0, stream});
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t member, cudaStream_t stream) {
  return queue({member, true, in, out, count, type, ncclSum, root, stream});
}

}  // extern "C"
