// The history of what a compiled function returns. This room knows of it only that backward passes
// may go through it later; core/autograd/compiled.h says how.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/match.h>
#include <tenon/core/graph/open_trace.h>
#include <tenon/core/graph/size_laws.h>
#include <tenon/core/tensor_impl.h>

namespace tenon::graph {

// What one recorded call left for backward passes, and then what each replay leaves for them.
class History {
 public:
  // A tensor that gradient rules will read.
  struct KeptTensor {
    TensorImpl* tensor;     // as long as the call is recorded
    uint32_t handles;       // that the history has
    int32_t argument = -1;  // of which it is a part; -1: it follows the results of the trace
  };
  virtual ~History() = default;

  // Examines what the call returned. Tells the recorder if no program can return such a thing.
  // Returns whether a backward pass may go through any of the results.
  virtual bool look(std::span<const Tensor> results) = 0;
  // Whether it leads to this result.
  virtual bool covers(const TensorImpl& result) const = 0;
  virtual std::span<KeptTensor> kept_tensors() = 0;
  // Ends the recording; `trace` is of the same call. Sets trace.refusal if this history cannot be
  // part of a program.
  virtual void settle(Trace& trace) = 0;
  // Compares this with a later call, and notes there which of its arguments stayed the same.
  virtual Match compare(History& now) const = 0;

  // Returns why a replay with these arguments would need another history; null if it may run.
  virtual const char* obstacle(std::span<const Tensor* const> arguments) const = 0;
  // Gives the results of a replay their history, and removes the kept tensors behind them from the
  // list.
  virtual void give(std::span<const Tensor* const> arguments, std::vector<Tensor>& results) = 0;

  // ---- of calls of other sizes

  // Returns how a later call differs, leaving out numbers that may follow from sizes; "" if it does
  // not differ.
  virtual std::string compare_but_sizes(const History& now) const = 0;
  // Notes what of its arguments stayed the same in a second call, of another size.
  virtual void note_arguments(const History& second) = 0;
  // Visits all numbers that may follow from sizes, those of equal structure in the same order.
  // Nobody else may use it meanwhile.
  virtual void visit(NumberVisitor& visitor) = 0;
  virtual std::shared_ptr<History> copy() const = 0;
  // Returns what is wrong with it, for a call with these arguments that does what the trace says;
  // null if nothing is.
  virtual const char* fault(std::span<const Tensor* const> arguments, const Trace& trace) const = 0;
  // Makes this use the backward passes of `other`, whose call had the same sizes, or sizes from
  // which this call follows. `sizes` are those of the call of this history.
  virtual void join(const History& other, const Sizes& sizes) = 0;
  virtual const Sizes& sizes() const = 0;
  virtual bool has_passes_of(const History& other) const = 0;

  // Says for people what it is, and what its backward passes are.
  virtual std::string explain() const = 0;
  virtual std::string explain_passes() const = 0;
};

// Begins the history of a call that will be recorded. `options` also says which passes backward
// programs go through, and how many of them are kept.
std::shared_ptr<History> begin_history(std::span<const Tensor* const> arguments,
                                       const CompileOptions& options);

}  // namespace tenon::graph
