// oneDNN's primitives on the host's threads. Debian builds oneDNN on OpenMP, whose threads would
// compete with the host's for the same cores: a training step took up to fifteen times as long. So
// every primitive is made for one thread and runs on the thread that calls it, and what is to run
// in parallel is cut into several jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.h>

#include <tenon/plugins/sdk/threads.h>

namespace tenon::onednn {

using Desc = dnnl_memory_desc_t;

// The services of the host that loaded the plugin; valid from init on.
const tn_host& host();

// Empty where oneDNN can be used in this process, else the reason why not.
const char* reason_not_to_start();

// Throws the error that a status means: TN_CODE_UNSUPPORTED if oneDNN has no primitive for a
// request.
void check(dnnl_status_t status, const char* what);

// A tensor in memory, its strides in elements.
Desc strided(dnnl_data_type_t type, std::span<const int64_t> shape,
             std::span<const int64_t> strides);
// A row-major tensor without gaps.
Desc contiguous(dnnl_data_type_t type, std::span<const int64_t> shape);
// A tensor whose layout the primitive chooses.
Desc any_layout(dnnl_data_type_t type, std::span<const int64_t> shape);
inline bool same_layout(const Desc& a, const Desc& b) {
  return dnnl_memory_desc_equal(&a, &b) != 0;
}
inline uint64_t bytes_of(const Desc& desc) { return dnnl_memory_desc_get_size(&desc); }

// Which of oneDNN's implementations are used. Its reference code is slower than any other backend.
enum class Code {
  fast,       // all but the reference code
  any,        // the first that there is
  reference,  // the reference code alone, which is right for every shape
};

// Compiled code for one operator and shape, for one thread. Copies share it.
class Primitive {
 public:
  Primitive() = default;
  // `op` is a dnnl_*_desc_t; `hint` the forward primitive of a gradient that needs one.
  static Primitive make(const void* op, Code code = Code::fast, const Primitive* hint = nullptr,
                        dnnl_fpmath_mode_t precision = dnnl_fpmath_mode_strict);
  // Copies values from one layout to another.
  static Primitive reorder(const Desc& from, const Desc& to, Code code = Code::fast);

  // The layout of an argument (DNNL_ARG_*).
  Desc layout(int argument) const;
  uint64_t scratch_bytes() const;
  // Returns the name of its implementation: "brg:avx512_core".
  std::string_view name() const;
  dnnl_primitive_t get() const { return code_.get(); }
  // What was asked for.
  Code kind() const { return kind_; }
  explicit operator bool() const { return code_ != nullptr; }

 private:
  static Primitive compile(dnnl_primitive_desc_t description, Code code);
  std::shared_ptr<dnnl_primitive> code_;
  Code kind_ = Code::fast;
};

// The operand that stands for a plan's own scratch memory.
inline constexpr size_t kWorkspace = SIZE_MAX;

// Memory that an argument of a step uses: `operand` is its place in the list that Work::run gets,
// or kWorkspace. Offsets are in bytes.
struct Argument {
  int name;  // DNNL_ARG_*
  size_t operand;
  Desc desc;
  int64_t offset = 0;
  int64_t advance = 0;  // added to it for each repetition of the step
};

struct Step {
  Primitive primitive;
  std::vector<Argument> arguments;
  // Instead of a primitive: code that gets where the arguments are, in their order; at most three.
  std::function<void(void* const* arguments)> own = {};
};

// Jobs that run side by side, in stages of which each waits for the one before. Every job has its
// own part of the operands. Results depend on how the work was cut, never on which thread does a
// job.
class Work {
 public:
  // Sets aside scratch memory and returns its offset, for arguments of kWorkspace.
  int64_t reserve(uint64_t bytes);
  // Adds a job to the current stage: it runs `first` once, and then `repeated` `times` times.
  void add(const std::vector<Step>& first, const std::vector<Step>& repeated = {},
           int64_t times = 0);
  // Jobs that are added from now on wait for those that were added before.
  void next_stage();

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  // Runs of one Work never overlap. `after(job)` is called by the thread that did the job, numbered
  // in the order of `add`, while its result is in the cache.
  template <class After>
  void run(std::span<void* const> operands, void* workspace, After&& after) const {
    require_memory_once();
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      const size_t begin = stages_[stage],
                   end = stage + 1 < stages_.size() ? stages_[stage + 1] : jobs_.size();
      const auto part = [&](int64_t first, int64_t last, uint32_t) {
        sdk::SingleThreadedOpenMP single;
        for (size_t i = begin + static_cast<size_t>(first); i < begin + static_cast<size_t>(last);
             ++i) {
          run(jobs_[i], operands, workspace);
          after(i);
        }
      };
      sdk::parallel_for(host(), static_cast<int64_t>(end - begin), 1, part);
    }
  }
  void run(std::span<void* const> operands, void* workspace) const {
    run(operands, workspace, [](size_t) {});
  }

 private:
  struct Release {
    void operator()(dnnl_memory_t memory) const { dnnl_memory_destroy(memory); }
    void operator()(dnnl_stream_t stream) const { dnnl_stream_destroy(stream); }
  };
  // oneDNN's object for memory, and where that is. To set another place takes 0.1 µs.
  struct Place {
    std::unique_ptr<dnnl_memory, Release> memory;
    void* now = nullptr;
  };
  // There are two, because the results of one call after another often alternate between two
  // places.
  struct Bound {
    size_t operand;
    int64_t offset, advance;
    mutable Place last, before;
  };
  struct BoundStep {
    Primitive primitive;
    std::vector<Bound> bound;
    mutable std::vector<dnnl_exec_arg_t> arguments;
    std::function<void(void* const*)> own;
  };
  struct Job {
    std::vector<BoundStep> first, repeated;
    int64_t times;
    std::unique_ptr<dnnl_stream, Release> stream;
  };

  BoundStep bind(const Step& step, int64_t scratch) const;
  // Some code is compiled only when it first runs.
  void require_memory_once() const;
  void run(const Job& job, std::span<void* const> operands, void* workspace) const;

  std::vector<Job> jobs_;
  std::vector<size_t> stages_ = {0};  // the first job of each
  uint64_t workspace_bytes_ = 0;
  mutable bool has_memory_ = false;
};

}  // namespace tenon::onednn
