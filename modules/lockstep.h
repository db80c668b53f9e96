// Parts of one call of DataParallel that read each other's values on their way.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include <tenon/core/autograd/recomputation.h>
#include <tenon/core/tensor.h>

namespace tenon::nn::detail {

class CallersSettings;

// Runs functions in turns, only one at a time: each has a thread of its own, the first that of the
// caller, and runs until it is done or comes to an exchange. So the order of all that happens is
// the same every time, and the functions may use the same objects.
class Lockstep {
 public:
  // Runs work(0), …, work(parts - 1). `resume(i)` is called whenever part i gets its turn. Throws
  // what the first part to fail threw; the others are ended at their next exchange.
  static void run(size_t parts, const std::function<void(size_t)>& work,
                  const std::function<void(size_t)>& resume);
  // The one that this thread is a part of; null outside of run().
  static Lockstep* current();

  using Join = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  // Waits until every part has come to the exchange of the same `place`, of which the first calls
  // `join` with the tensors of all parts. Returns this part's of its results. Throws a ValueError
  // if a part is done, or at another place.
  Tensor exchange(const void* place, const Tensor& x, const Join& join);

  size_t parts() const { return parts_.size(); }
  // Whether this thread's part has come to a checkpoint(), which would compute that part alone
  // again.
  bool is_inside_a_checkpoint() const { return Recomputation::current() != checkpoint_; }

 private:
  struct Part {
    bool done = false, waits = false;  // for a join
    const void* place = nullptr;
    Tensor given, result;
  };
  class Threads;

  Lockstep(size_t parts, const std::function<void(size_t)>& resume)
      : parts_(parts), resume_(resume) {}
  // With the settings, if there are any, of the thread that runs the first part.
  void run_part(size_t i, const std::function<void(size_t)>& work,
                const CallersSettings* settings) noexcept;
  void pass_turn(size_t from);  // under the lock
  void wait_for_turn(std::unique_lock<std::mutex>& lock, size_t i);
  void join_all(const void* place, const Join& join);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Part> parts_;
  size_t turn_ = 0;
  std::exception_ptr failure_;
  const Recomputation::Scope* const checkpoint_ = Recomputation::current();  // around all of it
  const std::function<void(size_t)>& resume_;
};

}  // namespace tenon::nn::detail
