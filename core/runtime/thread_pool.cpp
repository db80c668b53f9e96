#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/per_thread.h>
#include <tenon/core/base/spin_lock.h>
#include <tenon/core/runtime/thread_pool.h>
#include <tenon/plugins/host/checked_api.h>
#include <tenon/plugins/host/services.h>

namespace tenon {

using plugins::InsidePlugin;

namespace {

thread_local bool inside_loop TENON_FAST_TLS = false;

uint32_t default_threads() {
  if (auto asked_for = count_from_environment("TENON_NUM_THREADS")) return *asked_for;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

struct ThreadPool::Impl final : ForkMember {
  // One parallel_for. It lives on the stack of its caller, and is in the list while it has parts
  // that no thread has taken.
  struct Loop {
    tn_loop_body body;
    void* context;
    int64_t n;
    uint32_t parts;
    uint32_t taken = 0;
    std::atomic<uint32_t> running_or_waiting{parts};
    Loop* next =
        nullptr;  // the next in the list; it needs no memory, so a kernel cannot fail because of it
    // Where its caller is. Threads of the pool are there too while they run a part.
    const InsidePlugin* const inside = InsidePlugin::current();
    const char* const work = InsidePlugin::work();
    std::atomic<bool> threw{false};
    std::exception_ptr first_thrown = nullptr;

    // What a part lets out is for the caller, who first waits for all others.
    void run(int64_t begin, int64_t end, uint32_t part) noexcept {
      try {
        body(context, begin, end, part);
      } catch (...) {
        if (!threw.exchange(true)) first_thrown = std::current_exception();
      }
    }

    // Returns n * part / parts, whose product may be too large.
    int64_t begin_of(uint32_t part) const { return n / parts * part + n % parts * part / parts; }
  };

  explicit Impl(uint32_t n) : ForkMember(ForkOrder::tables), size(n) {
    join();
    start();
  }

  // If no more threads can be started, those that exist do the work.
  void start() noexcept {
    std::lock_guard guard(starting);
    if (started) return;
    try {
      threads.reserve(size);
      for (uint32_t i = 1; i < size; ++i) {
        threads.emplace_back([this] { work(); });
        pthread_setname_np(threads.back().native_handle(), fmt::format("tenon-{}", i).c_str());
      }
    } catch (const std::exception&) {
    }
    started = true;
  }

  void before_fork() override { lock.lock(); }
  // The loops of other threads do not exist in the child. The first loop starts the threads of the
  // pool again.
  void after_fork(bool in_child) override {
    if (in_child) {
      for (auto& t : threads)
        new (&t) std::thread;  // the old thread does not exist here and cannot be joined
      threads.clear();
      first = last = nullptr;
      sleepers = 0;
      started = false;
    }
    lock.unlock();
  }

  ~Impl() {
    leave();
    stopping = true;
    wake();
    for (auto& t : threads) t.join();
  }

  // Sleeping threads are counted, because a notification costs a system call even if no thread
  // sleeps. Both sides use the default memory order, so that either the sleeping thread sees the
  // new epoch, or this thread sees the sleeping one.
  void wake() {
    epoch.fetch_add(1);
    if (sleepers.load()) epoch.notify_all();
  }

  void list(Loop* loop) {
    (last ? last->next : first) = loop;
    last = loop;
  }
  void unlist(Loop* loop) {
    Loop* before = nullptr;
    for (Loop* l = first; l != loop; l = l->next) before = l;
    (before ? before->next : first) = loop->next;
    if (last == loop) last = before;
  }

  // Runs one part of `loop`, for its caller; or of any loop, on a thread of the pool, if it is
  // null. Returns false if there is no part left.
  bool run_part(Loop* loop) {
    const bool for_others = !loop;
    uint32_t part;
    {
      std::lock_guard guard(lock);
      if (!loop) {
        if (!first) return false;
        loop = first;
      }
      if (loop->taken == loop->parts) return false;
      part = loop->taken++;
      if (loop->taken == loop->parts) unlist(loop);
    }
    const int64_t begin = loop->begin_of(part), end = loop->begin_of(part + 1);
    if (for_others)
      run_for_caller(*loop, begin, end, part);
    else
      loop->run(begin, end, part);
    // The caller may destroy the loop as soon as the last part is done, so nothing of it is used
    // after this.
    if (loop->running_or_waiting.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      finished.fetch_add(1, std::memory_order_release);
      finished.notify_all();
    }
    return true;
  }

  // A signal, or the end of the process, in a part of a plugin's loop is one inside that plugin.
  static void run_for_caller(Loop& loop, int64_t begin, int64_t end, uint32_t part) {
    std::optional<InsidePlugin> inside;
    if (loop.inside) inside.emplace(*loop.inside);
    const char* const before = InsidePlugin::set_work(loop.work);
    loop.run(begin, end, part);
    InsidePlugin::set_work(before);
  }

  void work() {
    inside_loop = true;
    uint32_t seen = 0;
    while (!stopping) {
      while (run_part(nullptr)) {
      }
      // A kernel often follows another kernel. A short spin saves the system call; a long one would
      // waste a core.
      for (int spins = 0; spins < 1000 && epoch.load(std::memory_order_acquire) == seen; ++spins)
        cpu_pause();
      sleepers.fetch_add(1);
      if (epoch.load() == seen) epoch.wait(seen);
      sleepers.fetch_sub(1);
      seen = epoch.load(std::memory_order_acquire);
    }
  }

  void await(Loop& loop) {
    for (int spins = 0; spins < 2000; ++spins) {
      if (loop.running_or_waiting.load(std::memory_order_acquire) == 0) return;
      cpu_pause();
    }
    for (;;) {
      const uint32_t seen = finished.load(std::memory_order_acquire);
      if (loop.running_or_waiting.load(std::memory_order_acquire) == 0) return;
      finished.wait(seen, std::memory_order_acquire);
    }
  }

  const uint32_t size;
  SpinLock lock;
  Loop *first = nullptr, *last = nullptr;
  std::atomic<uint32_t> epoch{0}, finished{0};
  std::atomic<uint32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  ForkMutex starting{ForkOrder::tables};
  std::atomic<bool> started{false};
  std::vector<std::thread> threads;
};

ThreadPool::ThreadPool(uint32_t threads) : impl_(std::make_unique<Impl>(std::max(1u, threads))) {}
ThreadPool::~ThreadPool() = default;

ThreadPool& ThreadPool::shared() {
  struct Shared : ThreadPool {
    Shared() : ThreadPool(default_threads()) {}
  };
  static constinit NeverDestroyed<Shared> pool;  // streams may need it while the process ends
  return pool.get();
}

uint32_t ThreadPool::size() const { return impl_->size; }

void ThreadPool::parallel_for(int64_t n, int64_t grain, tn_loop_body body, void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  const auto parts = static_cast<uint32_t>(std::min<int64_t>(impl_->size, (n - 1) / grain + 1));
  if (inside_loop) return body(context, 0, n, 0);
  if (parts == 1) return body(context, 0, n, 0);
  if (!impl_->started) [[unlikely]]
    impl_->start();
  Impl::Loop loop{body, context, n, parts};
  {
    std::lock_guard guard(impl_->lock);
    impl_->list(&loop);
  }
  impl_->wake();
  inside_loop = true;
  while (impl_->run_part(&loop)) {
  }
  inside_loop = false;
  impl_->await(loop);
  if (loop.threw) std::rethrow_exception(loop.first_thrown);
}

namespace {

// No exception of the host may reach a plugin. Without threads the caller does the work.
ThreadPool* shared_or_null() noexcept {
  try {
    return &ThreadPool::shared();
  } catch (...) {
    return nullptr;
  }
}

uint32_t shared_size() noexcept {
  auto* pool = shared_or_null();
  return pool ? pool->size() : 1;
}

}  // namespace

void run_shared_loop(int64_t n, int64_t grain, tn_loop_body body, void* context) {
  if (auto* pool = shared_or_null())
    pool->parallel_for(n, grain, body, context);
  else
    body(context, 0, n, 0);
}

void lend_threads_to_plugins() { plugins::lend_threads({shared_size, run_shared_loop}); }

}  // namespace tenon
