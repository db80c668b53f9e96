// What a checkpoint computes a second time, in the backward pass.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/device.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/random.h>
#include <tenon/core/tensor.h>

namespace tenon {

// The values that gradient rules will read of what one call of checkpoint() recorded. They are
// numbered in the order in which they are computed, which is the same in the second run.
class Recomputation : public std::enable_shared_from_this<Recomputation> {
 public:
  Recomputation(std::vector<Tensor> inputs, std::function<void()> again);

  // While one exists, values that the thread records belong to the recomputation.
  class Scope {
   public:
    enum Run { first, second };
    Scope(Recomputation& recomputation, Run run);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Recomputation;
    Recomputation& of_;
    const Run run_;
    size_t next_ = 0;
    Scope* const before_;
  };
  // The scope of this thread, and how a thread that computes a part for it goes on in it, until it
  // ends. Only one of them may run at a time.
  static Scope* current();
  static void continue_in(Scope* scope);

  // Takes a value that is to be saved where the thread is in a scope. In the first run it returns
  // the recomputation, and the number of the value in `number`: the value itself need not be kept.
  // Otherwise it returns null.
  static std::shared_ptr<Recomputation> take(const Tensor& value, uint64_t& number);

  // Computes all values, unless they are there. In a recorded backward pass they have their
  // history. After the last drop it does nothing. Not to be called while a lock is held.
  void prepare();
  // Returns a value, once they are there. Throws an AutogradError if it was changed in place.
  Tensor value(uint64_t number) const;
  // Forgets a value that nobody will read any more.
  void drop(uint64_t number);

 private:
  struct Value {
    Shape shape;
    DType dtype;
    Tensor tensor;
    bool dropped = false;
    uint64_t version = 0;  // of the tensor, when it was computed again
  };
  // What a run needs. The last drop() forgets it, and a run that goes on meanwhile has its own
  // hold.
  struct Kept {
    std::vector<Tensor> inputs;
    std::function<void()> again;
  };
  void put(Scope& scope, const Tensor& value);
  void require_same_inputs(std::span<const Tensor> inputs) const;
  void run_again(const Kept& kept);
  [[noreturn]] void refuse_difference(const std::string& what) const;

  ForkMutex computing_{ForkOrder::calls};       // held while the function runs again
  mutable ForkMutex mutex_{ForkOrder::tables};  // protects values_, for a moment
  std::vector<Value> values_;
  size_t wanted_ = 0;      // values that are not dropped
  bool finished_ = false;  // the first run
  bool there_ = false, with_history_ = false;
  std::shared_ptr<const Kept> kept_;  // protected by mutex_
  std::vector<uint64_t> versions_;    // of the inputs
  const RandomState random_;
  const Device device_;
  const AutocastState autocast_;
  const PathNode* const path_;
};

}  // namespace tenon
