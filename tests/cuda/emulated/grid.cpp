// Grids on the CPU: threads are fibers that are switched where they meet at a barrier. A fiber
// whose thread ends without meeting anybody goes on with the next thread, so that kernels without
// barriers need one.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include <cuda_runtime.h>
#include <sys/mman.h>

#include "stack_switch.h"
#include "symbols.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace tenon::emulated {

namespace {

constexpr size_t kStackBytes = size_t{128} << 10;

enum class State { unstarted, running, at_block_barrier, at_warp_barrier, done };

struct Fiber {
  Place place;
  void* stack;
  int thread = -1;
};

struct Thread {
  State state = State::unstarted;
  Fiber* fiber = nullptr;
};

// All of it belongs to the one block that runs.
Place scheduler;
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber*> idle;
std::vector<Thread> threads;
int unstarted = 0;  // threads not started yet: [0, unstarted) in the block's order
int current = -1;
bool backwards = false;
const std::function<void()>* body = nullptr;

struct alignas(16) Slot {
  unsigned char bytes[16];
};
std::vector<Slot> slots;
std::vector<unsigned char> votes;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "emulated kernel: %s (block %u of %u, block size %u)\n", what, blockIdx.x,
               gridDim.x, blockDim.x);
  std::abort();
}

void become(int thread) {
  current = thread;
  unsigned t = static_cast<unsigned>(thread);
  threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

#if defined(__SANITIZE_ADDRESS__)
const void* scheduler_stack;
size_t scheduler_stack_bytes;
void leave_for(const void* stack, size_t bytes, void** keep) {
  __sanitizer_start_switch_fiber(keep, stack, bytes);
}
void arrived(void* kept, const void** stack, size_t* bytes) {
  __sanitizer_finish_switch_fiber(kept, stack, bytes);
}
#endif

void to_scheduler(Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
  void* kept = nullptr;
  leave_for(scheduler_stack, scheduler_stack_bytes, &kept);
  switch_stack(fiber.place, scheduler);
  arrived(kept, &scheduler_stack, &scheduler_stack_bytes);
#else
  switch_stack(fiber.place, scheduler);
#endif
}

void to_fiber(Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
  void* kept = nullptr;
  leave_for(fiber.stack, kStackBytes, &kept);
  switch_stack(scheduler, fiber.place);
  arrived(kept, nullptr, nullptr);
#else
  switch_stack(scheduler, fiber.place);
#endif
}

int next_unstarted() {
  int i = --unstarted;
  return backwards ? i : static_cast<int>(threads.size()) - 1 - i;
}

// What a fiber does for ever: threads that have not started, then back to the scheduler.
void fiber_main(void* fiber) {
  auto& self = *static_cast<Fiber*>(fiber);
#if defined(__SANITIZE_ADDRESS__)
  arrived(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
  for (;;) {
    while (unstarted > 0) {
      int t = next_unstarted();
      self.thread = t;
      threads[t].fiber = &self;
      threads[t].state = State::running;
      become(t);
      (*body)();
      threads[current].state = State::done;
      threads[current].fiber = nullptr;
    }
    self.thread = -1;
    idle.push_back(&self);
    to_scheduler(self);
  }
}

Fiber& idle_fiber() {
  if (idle.empty()) {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED) fail("no memory for a stack");
    prepare_stack(fiber->place, fiber->stack, kStackBytes, fiber_main, fiber.get());
    idle.push_back(fiber.get());
    fibers.push_back(std::move(fiber));
  }
  auto* fiber = idle.back();
  idle.pop_back();
  return *fiber;
}

void resume(int thread) {
  threads[thread].state = State::running;
  become(thread);
  to_fiber(*threads[thread].fiber);
}

// Threads of [begin, end) that wait at `barrier`, if all that are not done do; in alternating
// order.
bool release(int begin, int end, State barrier) {
  std::vector<int> waiting;
  for (int t = begin; t < end; ++t) {
    if (threads[t].state == barrier)
      waiting.push_back(t);
    else if (threads[t].state != State::done)
      return false;
  }
  if (backwards) std::reverse(waiting.begin(), waiting.end());
  for (int t : waiting) threads[t].state = State::running;
  for (int t : waiting) resume(t);
  return !waiting.empty();
}

void run_block() {
  const int n = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  threads.assign(static_cast<size_t>(n), {});
  slots.resize(static_cast<size_t>(n));
  votes.resize(static_cast<size_t>(n));
  unstarted = n;
  while (unstarted > 0) to_fiber(idle_fiber());
  for (;;) {
    bool moved = false, all_done = true;
    for (int begin = 0; begin < n; begin += 32)
      moved = release(begin, std::min(begin + 32, n), State::at_warp_barrier) || moved;
    if (!moved) moved = release(0, n, State::at_block_barrier);
    for (auto& t : threads) all_done = all_done && t.state == State::done;
    if (all_done) return;
    if (!moved) fail("threads wait at different barriers for ever");
  }
}

void wait_at(State barrier) {
  const int self = current;
  threads[self].state = barrier;
  to_scheduler(*threads[self].fiber);
  become(self);
}

}  // namespace

// Runs a grid to its end; the caller holds the lock that makes it the only one.
void run_grid(dim3 grid, dim3 block, const Kernel& kernel, const std::function<void()>& thread) {
  static unsigned launches = 0;
  blockDim = block;
  gridDim = grid;
  body = &thread;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  const bool last_first = ++launches % 2 == 0;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t b = last_first ? blocks - 1 - i : i;
    blockIdx = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                static_cast<unsigned>(b / grid.x / grid.y)};
    backwards = (b + launches) % 2 != 0;
    // A block finds anything in its shared memory: make it show.
    for (auto& shared : kernel.shared) std::memset(shared.at, 0xff, shared.bytes);
    run_block();
  }
  body = nullptr;
}

void block_barrier() { wait_at(State::at_block_barrier); }
void warp_barrier() { wait_at(State::at_warp_barrier); }
int lane() { return current % 32; }

void exchange(void* value, size_t bytes, int source) {
  if (bytes > sizeof(Slot)) fail("a shuffle of more than 16 bytes");
  const int self = current, base = self / 32 * 32;
  std::memcpy(slots[self].bytes, value, bytes);
  warp_barrier();
  const int from = base + (source & 31);
  const bool there = from < static_cast<int>(threads.size()) && threads[from].state != State::done;
  // What an absent lane holds is undefined: make it show.
  if (there)
    std::memcpy(value, slots[from].bytes, bytes);
  else
    std::memset(value, 0xcb, bytes);
  warp_barrier();
}

unsigned ballot(bool predicate) {
  const int self = current, base = self / 32 * 32;
  votes[self] = predicate;
  warp_barrier();
  unsigned result = 0;
  for (int l = 0; l < 32 && base + l < static_cast<int>(threads.size()); ++l)
    if (threads[base + l].state != State::done && votes[base + l]) result |= 1u << l;
  warp_barrier();
  return result;
}

}  // namespace tenon::emulated
