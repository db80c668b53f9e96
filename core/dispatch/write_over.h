// Operators that write their result over one of their inputs, for methods that change a tensor and
// are made of a function that returns a new one.
#pragma once

#include <utility>

#include <tenon/core/base/per_thread.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/plan_cache.h>

namespace tenon {

// The tensor over which the next call of this thread may write; null where it makes a new one.
extern constinit thread_local const Tensor* write_over_target TENON_FAST_TLS;

// While one is alive, the next operator that `run` is asked for returns the target, changed, if it
// can write over it. So the function that is called has to return what its first operator does, or
// to convert operands first.
class WriteOver {
 public:
  explicit WriteOver(const Tensor* target) : before_(std::exchange(write_over_target, target)) {}
  ~WriteOver() { write_over_target = before_; }
  WriteOver(const WriteOver&) = delete;
  WriteOver& operator=(const WriteOver&) = delete;

 private:
  const Tensor* before_;
};

// Returns the target if the call could be run into it, and null otherwise; from then on there is no
// target. That needs one walk through memory: a pointwise call on the target, which has the shape
// and the dtype of the result, no gaps, and memory that no other input shares. What is recorded as
// a program makes a new tensor, because the passes decide what is written where.
const Tensor* run_over_target(const Call& call);

// Runs the plan of a call of run_into. One input is `out`, and the others lie apart from it.
// `common` is the result of common_layout.
void run_plan_into(PlanEntry& entry, const Tensor& out, const Call& call, const TensorImpl* common);

}  // namespace tenon
