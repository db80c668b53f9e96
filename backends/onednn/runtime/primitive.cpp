#include "runtime/primitive.h"

#include <algorithm>
#include <mutex>
#include <new>

#include <sys/mman.h>

#include "runtime/common.h"

namespace tenon::onednn {
namespace {

// Primitives are made one at a time: what require_memory() finds must be there for the one that is
// being made. They are made only for plans, and the host forks while none is being made, so that
// the child finds this lock free, and oneDNN's cache of primitives.
constinit std::mutex making;

// oneDNN 2.6 follows null pointers where the system gives it no memory: it makes its objects in
// whatever its own operator new returned, and compiles into a buffer that could not grow. So before
// it makes anything, the system is asked for more than that takes, and gets it back. Of the
// convolutions, products and reorders that were measured, with ONEDNN_MAX_CPU_ISA from SSE41 to
// all that there is, the code of none took more than 6 MiB.
void require_memory() {
  constexpr size_t kBytes = 16 << 20;
  void* const room =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    throw sdk::Error(
        TN_CODE_OUT_OF_MEMORY,
        sdk::text("the system does not give the {} MiB that must be free before oneDNN "
                  "compiles code, because it does not survive a shortage",
                  kBytes >> 20));
  munmap(room, kBytes);
}

// Never destroyed: plans exist until the process has ended.
dnnl_engine_t engine() {
  static dnnl_engine_t the_engine = [] {
    dnnl_engine_t made = nullptr;
    check(dnnl_engine_create(&made, dnnl_cpu, 0), "an engine for the CPU");
    return made;
  }();
  return the_engine;
}

template <class T, auto Destroy>
struct Handle {
  T value = nullptr;
  Handle() = default;
  explicit Handle(T v) : value(v) {}
  Handle(const Handle&) = delete;
  ~Handle() { reset(nullptr); }
  void reset(T other) {
    if (value) Destroy(value);
    value = other;
  }
};
using PrimitiveDesc = Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Candidates = Handle<dnnl_primitive_desc_iterator_t, dnnl_primitive_desc_iterator_destroy>;
using Attributes = Handle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;

void make_attributes(Attributes& attributes, dnnl_fpmath_mode_t precision) {
  check(dnnl_primitive_attr_create(&attributes.value), "attributes");
  check(dnnl_primitive_attr_set_scratchpad_mode(attributes.value, dnnl_scratchpad_mode_user),
        "scratch memory of the caller");
  // Always, because the default can be changed from outside (ONEDNN_DEFAULT_FPMATH_MODE).
  check(dnnl_primitive_attr_set_fpmath_mode(attributes.value, precision), "this precision");
}

const_dnnl_primitive_desc_t description_of(dnnl_primitive_t code) {
  const_dnnl_primitive_desc_t description = nullptr;
  check(dnnl_primitive_get_primitive_desc(code, &description), "the description of a primitive");
  return description;
}

const Desc& queried(const_dnnl_primitive_desc_t description, dnnl_query_t what, int index) {
  const Desc* desc = dnnl_primitive_desc_query_md(description, what, index);
  if (!desc) throw sdk::Error(TN_CODE_INTERNAL, "oneDNN does not tell the layout of an argument");
  return *desc;
}

std::string_view name_of(const_dnnl_primitive_desc_t description) {
  const char* name = nullptr;
  check(dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0,
                                  static_cast<void*>(&name)),
        "the name of an implementation");
  return name;
}

bool is_reference(std::string_view name) {
  return name.starts_with("ref") || name.starts_with("simple:any");
}

}  // namespace

const char* reason_not_to_start() {
  switch (dnnl_version()->cpu_runtime) {
    case DNNL_RUNTIME_SEQ:
      return "";
    case DNNL_RUNTIME_OMP:
      return omp_set_num_threads && omp_get_max_threads
                 ? ""
                 : "oneDNN's OpenMP cannot be told to use one thread";
    default:
      return "oneDNN is built on threads of its own (TBB or a pool) that cannot be kept from "
             "competing with the host's; a build on OpenMP or without threads is needed";
  }
}

void check(dnnl_status_t status, const char* what) {
  switch (status) {
    case dnnl_success:
      return;
    case dnnl_out_of_memory:
      throw std::bad_alloc();
    case dnnl_unimplemented:
      sdk::unsupported("oneDNN does not offer {} for these shapes and this CPU", what);
    case dnnl_invalid_arguments:
      sdk::unsupported("oneDNN does not take these arguments for {}", what);
    default:
      throw sdk::Error(TN_CODE_INTERNAL, sdk::text("oneDNN failed with status {} on {}",
                                                   static_cast<int>(status), what));
  }
}

Desc strided(dnnl_data_type_t type, std::span<const int64_t> shape,
             std::span<const int64_t> strides) {
  Desc desc;
  check(dnnl_memory_desc_init_by_strides(&desc, static_cast<int>(shape.size()), shape.data(), type,
                                         strides.data()),
        "a layout by strides");
  return desc;
}

Desc contiguous(dnnl_data_type_t type, std::span<const int64_t> shape) {
  int64_t strides[TN_MAX_RANK], size = 1;
  for (size_t i = shape.size(); i-- > 0; size *= shape[i]) strides[i] = size;
  return strided(type, shape, {strides, shape.size()});
}

Desc any_layout(dnnl_data_type_t type, std::span<const int64_t> shape) {
  Desc desc;
  check(dnnl_memory_desc_init_by_tag(&desc, static_cast<int>(shape.size()), shape.data(), type,
                                     dnnl_format_tag_any),
        "a layout to choose");
  return desc;
}

Primitive Primitive::compile(dnnl_primitive_desc_t description, Code kind) {
  const std::string_view name = name_of(description);
  if (kind == Code::fast && is_reference(name))
    sdk::unsupported("oneDNN has only reference code for this ({})", name);
  dnnl_primitive_t code = nullptr;
  check(dnnl_primitive_create(&code, description), "compiled code");
  Primitive made;
  made.code_ = {code, dnnl_primitive_destroy};
  made.kind_ = kind;
  return made;
}

Primitive Primitive::make(const void* op, Code code, const Primitive* hint,
                          dnnl_fpmath_mode_t precision) {
  std::lock_guard lock(making);
  require_memory();
  sdk::SingleThreadedOpenMP single;
  Attributes attributes;
  make_attributes(attributes, precision);
  Candidates candidates;
  check(dnnl_primitive_desc_iterator_create(&candidates.value,
                                            static_cast<const_dnnl_op_desc_t>(op), attributes.value,
                                            engine(), hint ? description_of(hint->get()) : nullptr),
        "a primitive");
  PrimitiveDesc description{dnnl_primitive_desc_iterator_fetch(candidates.value)};
  while (code == Code::reference && description.value &&
         !is_reference(name_of(description.value))) {
    const auto status = dnnl_primitive_desc_iterator_next(candidates.value);
    if (status == dnnl_iterator_ends) sdk::unsupported("oneDNN has no reference code for this");
    check(status, "another implementation");
    description.reset(dnnl_primitive_desc_iterator_fetch(candidates.value));
  }
  if (!description.value) throw std::bad_alloc();
  return compile(description.value, code);
}

Primitive Primitive::reorder(const Desc& from, const Desc& to, Code code) {
  std::lock_guard lock(making);
  require_memory();
  sdk::SingleThreadedOpenMP single;
  Attributes attributes;
  make_attributes(attributes, dnnl_fpmath_mode_strict);
  PrimitiveDesc description;
  check(dnnl_reorder_primitive_desc_create(&description.value, &from, engine(), &to, engine(),
                                           attributes.value),
        "a reorder");
  return compile(description.value, code);
}

Desc Primitive::layout(int argument) const {
  return queried(description_of(get()), dnnl_query_exec_arg_md, argument);
}

std::string_view Primitive::name() const { return name_of(description_of(get())); }

uint64_t Primitive::scratch_bytes() const {
  return bytes_of(queried(description_of(get()), dnnl_query_scratchpad_md, 0));
}

int64_t Work::reserve(uint64_t bytes) {
  const auto at = static_cast<int64_t>(workspace_bytes_);
  workspace_bytes_ += (bytes + 63) / 64 * 64;
  return at;
}

// The steps of a job share scratch memory, as they run one after the other.
void Work::add(const std::vector<Step>& first, const std::vector<Step>& repeated, int64_t times) {
  require_memory();
  uint64_t bytes = 0;
  for (auto* steps : {&first, &repeated})
    for (auto& step : *steps)
      if (step.primitive) bytes = std::max(bytes, step.primitive.scratch_bytes());
  const int64_t scratch = reserve(bytes);
  Job job{{}, {}, times, nullptr};
  for (auto& step : first) job.first.push_back(bind(step, scratch));
  for (auto& step : repeated) job.repeated.push_back(bind(step, scratch));
  dnnl_stream_t stream = nullptr;
  check(dnnl_stream_create(&stream, engine(), dnnl_stream_default_flags), "a stream");
  job.stream.reset(stream);
  jobs_.push_back(std::move(job));
}

void Work::next_stage() {
  if (stages_.back() != jobs_.size()) stages_.push_back(jobs_.size());
}

Work::BoundStep Work::bind(const Step& step, int64_t scratch) const {
  BoundStep bound{step.primitive, {}, {}, step.own};
  if (step.own) {
    for (auto& a : step.arguments) bound.bound.push_back({a.operand, a.offset, a.advance, {}, {}});
    return bound;
  }
  const auto place = [](const Desc& desc) {
    dnnl_memory_t made = nullptr;
    check(dnnl_memory_create(&made, &desc, engine(), DNNL_MEMORY_NONE), "memory");
    return Place{std::unique_ptr<dnnl_memory, Release>(made)};
  };
  const auto add = [&](const Argument& a) {
    bound.bound.push_back({a.operand, a.offset, a.advance, place(a.desc), place(a.desc)});
    bound.arguments.push_back({a.name, bound.bound.back().last.memory.get()});
  };
  for (auto& a : step.arguments) add(a);
  if (const auto size = static_cast<int64_t>(step.primitive.scratch_bytes()))
    add({DNNL_ARG_SCRATCHPAD, kWorkspace, contiguous(dnnl_u8, {&size, 1}), scratch});
  return bound;
}

void Work::require_memory_once() const {
  if (!has_memory_) require_memory();
  has_memory_ = true;
}

void Work::run(const Job& job, std::span<void* const> operands, void* workspace) const {
  const auto place_of = [&](const Bound& b, int64_t time) {
    void* start = b.operand == kWorkspace ? workspace : operands[b.operand];
    return static_cast<char*>(start) + b.offset + time * b.advance;
  };
  const auto run_step = [&](const BoundStep& step, int64_t time) {
    if (step.own) {
      void* places[3] = {};
      for (size_t i = 0; i < step.bound.size(); ++i) places[i] = place_of(step.bound[i], time);
      return step.own(places);
    }
    for (size_t i = 0; i < step.bound.size(); ++i) {
      const Bound& b = step.bound[i];
      void* here = place_of(b, time);
      if (b.last.now == here) continue;
      std::swap(b.last, b.before);
      step.arguments[i].memory = b.last.memory.get();
      // Setting it writes zeros to the padding of blocks, every time.
      if (b.last.now != here) {
        b.last.now = nullptr;
        check(dnnl_memory_set_data_handle(b.last.memory.get(), here), "an operand's memory");
        b.last.now = here;
      }
    }
    check(dnnl_primitive_execute(step.primitive.get(), job.stream.get(),
                                 static_cast<int>(step.arguments.size()), step.arguments.data()),
          "a run");
  };
  for (auto& step : job.first) run_step(step, 0);
  for (int64_t time = 0; time < job.times; ++time)
    for (auto& step : job.repeated) run_step(step, time);
}

}  // namespace tenon::onednn
