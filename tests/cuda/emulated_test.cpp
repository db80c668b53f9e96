// The emulated device shows the mistakes that a real one shows now and then: waits that are
// missing, memory that nothing wrote, a device that is not current, launches and captures that CUDA
// refuses. Each is made here on purpose.
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <cuda_runtime.h>

#include "scheduler.h"

using tenon::emulated::reseed;

namespace {

constexpr int kSeeds = 64;
constexpr unsigned kBlock = 128;

__global__ void add_one(float* to, const float* from, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) to[i] = from[i] + 1;
}
__global__ void __launch_bounds__(64) narrow(float* to) { *to = 1; }
// Sums what the neighbours put into shared memory. With `barrier` false each may come before the
// others.
__global__ void sum_of_block(float* to, bool barrier, bool write) {
  __shared__ float shared[kBlock];
  if (write) shared[threadIdx.x] = 1;
  if (barrier) __syncthreads();
  float sum = 0;
  for (unsigned i = 0; i < kBlock; ++i) sum += shared[i];
  to[threadIdx.x] = sum;
}

void ok(cudaError_t code) { BOOST_REQUIRE_EQUAL(code, cudaSuccess); }

struct OnDevice {
  explicit OnDevice(int device) { ok(cudaSetDevice(device)); }
  ~OnDevice() { ok(cudaSetDevice(0)); }
};

template <class... Params, class... Args>
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, size_t dynamic_bytes,
                   void (*kernel)(Params...), Args... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = dynamic_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Params>(args)...);
}

struct Memory {
  explicit Memory(int n) {
    ok(cudaMalloc(reinterpret_cast<void**>(&at), static_cast<size_t>(n) * sizeof(float)));
  }
  ~Memory() { cudaFree(at); }
  Memory(const Memory&) = delete;
  float* at = nullptr;
};
struct Stream {
  Stream() { ok(cudaStreamCreateWithFlags(&at, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(at); }
  Stream(const Stream&) = delete;
  cudaStream_t at = nullptr;
};
struct Event {
  Event() { ok(cudaEventCreateWithFlags(&at, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(at); }
  Event(const Event&) = delete;
  cudaEvent_t at = nullptr;
};

// One stream makes 1, another adds 1 to it and a third copies it to the host: 2, where each waits
// for the one before.
float through_streams(uint64_t seed, bool second_waits, bool third_waits) {
  reseed(seed);
  Memory a(1), b(1);
  Stream first, second, third;
  Event made, added;
  float zero = 0, result = -1;
  ok(cudaMemcpyAsync(a.at, &zero, sizeof zero, cudaMemcpyHostToDevice, first.at));
  ok(launch(first.at, 1, 1, 0, add_one, a.at, a.at, 1));
  ok(cudaEventRecord(made.at, first.at));
  if (second_waits) ok(cudaStreamWaitEvent(second.at, made.at, 0));
  ok(launch(second.at, 1, 1, 0, add_one, b.at, a.at, 1));
  ok(cudaEventRecord(added.at, second.at));
  if (third_waits) ok(cudaStreamWaitEvent(third.at, added.at, 0));
  ok(cudaMemcpyAsync(&result, b.at, sizeof result, cudaMemcpyDeviceToHost, third.at));
  for (auto* stream : {&first, &second, &third}) ok(cudaStreamSynchronize(stream->at));
  return result;
}

int wrong_results(bool second_waits, bool third_waits) {
  int wrong = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed)
    wrong += through_streams(seed, second_waits, third_waits) != 2;
  return wrong;
}

// kBlock, or a sum that is not.
float sum_anywhere(bool barrier, bool write) {
  Memory sums(kBlock);
  Stream stream;
  ok(launch(stream.at, 1, kBlock, 0, sum_of_block, sums.at, barrier, write));
  ok(cudaStreamSynchronize(stream.at));
  for (unsigned i = 0; i < kBlock; ++i)
    if (sums.at[i] != kBlock) return sums.at[i];
  return kBlock;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_wait_left_out_between_streams_shows) {
  BOOST_TEST(wrong_results(true, true) == 0);
  BOOST_TEST(wrong_results(false, true) > kSeeds / 8);
  BOOST_TEST(wrong_results(true, false) > kSeeds / 8);
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_order) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const float once = through_streams(seed, false, false),
                again = through_streams(seed, false, false);
    BOOST_TEST((once == again || (std::isnan(once) && std::isnan(again))));
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_done_before_somebody_waits) {
  reseed(1);
  Memory a(4);
  Stream stream;
  Event event;
  std::vector<float> host = {1, 2, 3, 4}, back(4, 0);
  BOOST_TEST(std::isnan(a.at[0]));  // fresh memory
  ok(cudaMemcpyAsync(a.at, host.data(), 16, cudaMemcpyHostToDevice, stream.at));
  ok(launch(stream.at, 1, 4, 0, add_one, a.at, a.at, 4));
  ok(cudaMemcpyAsync(back.data(), a.at, 16, cudaMemcpyDeviceToHost, stream.at));
  ok(cudaEventRecord(event.at, stream.at));
  BOOST_TEST(back[0] == 0);
  host[3] = 50;  // too early: the copy may not have read it
  int asked = 1;
  while (cudaEventQuery(event.at) == cudaErrorNotReady) ++asked;
  BOOST_TEST(asked < 10);  // who asks again and again gets there
  BOOST_TEST(back[0] == 2);
  BOOST_TEST(back[3] == 51);
}

BOOST_AUTO_TEST_CASE(a_full_queue_runs_and_a_destroyed_stream_ends_its_work) {
  reseed(3);
  Memory a(1);
  float zero = 0;
  {
    Stream stream;
    ok(cudaMemcpyAsync(a.at, &zero, sizeof zero, cudaMemcpyHostToDevice, stream.at));
    for (int i = 0; i < 1000; ++i) ok(launch(stream.at, 1, 1, 0, add_one, a.at, a.at, 1));
    BOOST_TEST(a.at[0] > 500);
    BOOST_TEST(a.at[0] < 1000);
    Event event;
    ok(cudaEventRecord(event.at, stream.at));
    cudaStream_t gone = stream.at;
    ok(cudaStreamDestroy(gone));
    BOOST_TEST(cudaStreamSynchronize(gone) == cudaErrorInvalidResourceHandle);
    ok(cudaEventSynchronize(event.at));
  }
  BOOST_TEST(a.at[0] == 1000);
}

BOOST_AUTO_TEST_CASE(shared_memory_that_nothing_wrote_and_a_barrier_left_out_show) {
  BOOST_TEST(sum_anywhere(true, true) == kBlock);
  BOOST_TEST(std::isnan(sum_anywhere(true, false)));
  BOOST_TEST(std::isnan(sum_anywhere(false, true)));
}

BOOST_AUTO_TEST_CASE(the_current_device_is_that_of_the_stream) {
  Memory a(1);
  Stream here;
  Event event;
  cudaStream_t there = nullptr;
  {
    OnDevice other(1);
    ok(cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking));
    BOOST_TEST(launch(here.at, 1, 1, 0, add_one, a.at, a.at, 1) == cudaErrorInvalidResourceHandle);
    BOOST_TEST(cudaMemsetAsync(a.at, 0, 4, here.at) == cudaErrorInvalidResourceHandle);
    ok(cudaEventRecord(event.at, here.at));  // these are one device's, whichever is current
  }
  BOOST_TEST(launch(there, 1, 1, 0, add_one, a.at, a.at, 1) == cudaErrorInvalidResourceHandle);
  BOOST_TEST(cudaEventRecord(event.at, there) == cudaErrorInvalidResourceHandle);
  BOOST_TEST(cudaGetLastError() == cudaErrorInvalidResourceHandle);
  BOOST_TEST(cudaGetLastError() == cudaSuccess);
  ok(cudaStreamWaitEvent(there, event.at, 0));
  ok(cudaStreamSynchronize(there));
  ok(cudaStreamDestroy(there));
  BOOST_TEST(cudaStreamDestroy(there) == cudaErrorInvalidResourceHandle);
}

BOOST_AUTO_TEST_CASE(launches_that_no_device_takes) {
  Memory a(1);
  Stream s;
  auto add = [&](dim3 grid, dim3 block, size_t bytes) {
    return launch(s.at, grid, block, bytes, add_one, a.at, a.at, 1);
  };
  for (dim3 grid : {dim3(0), dim3(1, 65536), dim3(1, 1, 65536), dim3(0x80000000u)})
    BOOST_TEST(add(grid, 1, 0) == cudaErrorInvalidConfiguration);
  for (dim3 block : {dim3(0), dim3(1025), dim3(1, 1, 65), dim3(32, 33)})
    BOOST_TEST(add(1, block, 0) == cudaErrorInvalidConfiguration);
  BOOST_TEST(add(1, 1, (48 << 10) + 1) == cudaErrorInvalidValue);
  ok(add(1, 1024, 48 << 10));
  BOOST_TEST(launch(s.at, 1, kBlock, 48 << 10, sum_of_block, a.at, true, true) ==
             cudaErrorInvalidValue);  // it has some of its own
  BOOST_TEST(launch(s.at, 1, 65, 0, narrow, a.at) ==
             cudaErrorInvalidConfiguration);  // __launch_bounds__
  ok(launch(s.at, 1, 64, 0, narrow, a.at));
  ok(cudaStreamSynchronize(s.at));
}

// ---- Captures

BOOST_AUTO_TEST_CASE(what_spoils_a_capture) {
  Memory a(1);
  Stream s, other;
  Event outside, inside;
  ok(cudaEventRecord(outside.at, other.at));
  auto spoilt = [&](auto&& call, cudaError_t expected,
                    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed) {
    cudaGraph_t graph = nullptr;
    ok(cudaStreamBeginCapture(s.at, mode));
    BOOST_TEST(cudaStreamBeginCapture(s.at, mode) == cudaErrorIllegalState);
    ok(launch(s.at, 1, 1, 0, add_one, a.at, a.at, 1));
    BOOST_TEST(call() == expected);
    BOOST_TEST(launch(s.at, 1, 1, 0, add_one, a.at, a.at, 1) == cudaErrorStreamCaptureInvalidated);
    BOOST_TEST(cudaStreamEndCapture(s.at, &graph) == cudaErrorStreamCaptureInvalidated);
    BOOST_TEST(!graph);
    ok(cudaStreamSynchronize(s.at));  // it runs again
  };
  spoilt([&] { return cudaStreamSynchronize(s.at); }, cudaErrorStreamCaptureUnsupported);
  spoilt([&] { return cudaStreamWaitEvent(s.at, outside.at, 0); }, cudaErrorStreamCaptureIsolation);
  spoilt([&] { return ok(cudaEventRecord(inside.at, s.at)), cudaEventSynchronize(inside.at); },
         cudaErrorCapturedEvent);
  spoilt([&] { return ok(cudaEventRecord(inside.at, s.at)), cudaEventQuery(inside.at); },
         cudaErrorCapturedEvent);
  void* memory = nullptr;
  spoilt([&] { return cudaMalloc(&memory, 16); }, cudaErrorStreamCaptureUnsupported,
         cudaStreamCaptureModeGlobal);
  spoilt([&] { return cudaFree(a.at); }, cudaErrorStreamCaptureUnsupported,
         cudaStreamCaptureModeThreadLocal);
  cudaGraph_t graph = nullptr;
  BOOST_TEST(cudaStreamEndCapture(s.at, &graph) == cudaErrorIllegalState);
}

BOOST_AUTO_TEST_CASE(a_relaxed_capture_lets_the_rest_go_on) {
  Stream s, other;
  Event outside;
  ok(cudaStreamBeginCapture(s.at, cudaStreamCaptureModeRelaxed));
  Memory a(1);
  ok(launch(other.at, 1, 1, 0, add_one, a.at, a.at, 1));
  ok(cudaEventRecord(outside.at, other.at));
  ok(cudaEventSynchronize(outside.at));
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(s.at, &graph));
  ok(cudaGraphDestroy(graph));
}

BOOST_AUTO_TEST_CASE(a_capture_of_two_streams_keeps_their_order) {
  Memory a(1), b(1);
  float zero = 0;
  Stream begin, second;
  Event fork, join;
  for (bool joined : {false, true}) {
    cudaGraph_t graph = nullptr;
    ok(cudaStreamBeginCapture(begin.at, cudaStreamCaptureModeRelaxed));
    ok(launch(begin.at, 1, 1, 0, add_one, a.at, a.at, 1));
    ok(cudaEventRecord(fork.at, begin.at));
    ok(cudaStreamWaitEvent(second.at, fork.at, 0));
    ok(launch(second.at, 1, 1, 0, add_one, b.at, a.at, 1));
    ok(cudaEventRecord(join.at, second.at));
    if (joined) ok(cudaStreamWaitEvent(begin.at, join.at, 0));
    BOOST_TEST(cudaStreamEndCapture(begin.at, &graph) ==
               (joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
    if (!joined) continue;
    cudaGraphExec_t exec = nullptr;
    ok(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    ok(cudaGraphDestroy(graph));
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      reseed(seed);
      ok(cudaMemcpyAsync(a.at, &zero, sizeof zero, cudaMemcpyHostToDevice, begin.at));
      ok(cudaStreamSynchronize(begin.at));
      ok(cudaGraphLaunch(exec, begin.at));
      ok(cudaGraphLaunch(exec, second.at));  // one graph never overlaps itself
      ok(cudaStreamSynchronize(begin.at));
      ok(cudaStreamSynchronize(second.at));
      BOOST_TEST(b.at[0] == 3);
    }
    ok(cudaGraphExecDestroy(exec));
  }
  cudaGraph_t graph = nullptr;
  ok(cudaStreamBeginCapture(begin.at, cudaStreamCaptureModeRelaxed));
  ok(cudaEventRecord(fork.at, begin.at));
  ok(cudaStreamWaitEvent(second.at, fork.at, 0));
  BOOST_TEST(cudaStreamEndCapture(second.at, &graph) == cudaErrorStreamCaptureUnmatched);
  BOOST_TEST(cudaStreamEndCapture(begin.at, &graph) == cudaErrorStreamCaptureInvalidated);
}
