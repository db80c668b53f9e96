// "faulty": an overlay over the cpu that computes one operator with the cpu's own kernels, and then
// makes the mistake that TENON_TEST_FAULT names. What checks backends has to find each of them.
// Without that name it refuses everything, as "faulty_over_sim" is to do, the same over sim.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/sdk.h>

using tenon::sdk::Error;
using tenon::sdk::guard;
using tenon::sdk::make_error;
using tenon::sdk::Request;

namespace {

tn_backend_api cpu;  // the cpu plugin's table
tn_device* inner = nullptr;

// What happens around the run of the cpu's plan, `n` being the elements of the first output.
using Around = void (*)(float* y, int64_t n, const std::function<void()>& run);

void wrong_tail(float* y, int64_t n, const std::function<void()>& run) {
  run();
  if (n % 8) y[n - 1] += 1;
}
void one_percent_more(float* y, int64_t n, const std::function<void()>& run) {
  run();
  for (int64_t i = 0; i < n; ++i) y[i] *= 1.01f;
}
void added_to_what_was_there(float* y, int64_t n, const std::function<void()>& run) {
  const std::vector<float> before(y, y + n);
  run();
  for (int64_t i = 0; i < n; ++i) y[i] += before[static_cast<size_t>(i)];
}
void byte_behind(float* y, int64_t n, const std::function<void()>& run) {
  run();
  reinterpret_cast<char*>(y + n)[0] ^= 1;
}
void other_bits_each_time(float* y, int64_t, const std::function<void()>& run) {
  static bool odd = false;
  run();
  if ((odd = !odd)) y[0] = std::nextafterf(y[0], std::numeric_limits<float>::infinity());
}
// As what takes uninitialised memory for a buffer that it has filled before.
void other_bits_after_a_large_number(float* y, int64_t n, const std::function<void()>& run) {
  const bool large = n > 0 && std::abs(y[0]) > 1e6f;
  run();
  if (large) y[0] = std::nextafterf(y[0], std::numeric_limits<float>::infinity());
}
// As what looks for an element beyond all others without a first one.
template <class Beyond>
void compared_with_what_was_there(float* y, int64_t n, const std::function<void()>& run) {
  const std::vector<float> before(y, y + n);
  run();
  for (int64_t i = 0; i < n; ++i)
    if (const float old = before[static_cast<size_t>(i)]; Beyond()(old, y[i])) y[i] = old;
}
void swallowed_nan(float* y, int64_t n, const std::function<void()>& run) {
  run();
  for (int64_t i = 0; i < n; ++i)
    if (std::isnan(y[i])) y[i] = 0;
}
void crash(float*, int64_t, const std::function<void()>&) {
  std::signal(SIGSEGV, SIG_DFL);  // a sanitizer would end the process in its own way
  std::raise(SIGSEGV);
}
void hang(float*, int64_t, const std::function<void()>&) {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}
// Says something on the pipe that is for the results.
template <bool kWhole>
void write_to_the_pipe(float*, int64_t, const std::function<void()>& run) {
  run();
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');)
    if (word == "--pipe" && std::getline(file, word, '\0'))
      dprintf(std::atoi(word.c_str()), kWhole ? "{\"end\": 1}\n" : "half a line");
}
// Without the handlers of fork(), which would wait for this run.
void leave_a_process_behind(float*, int64_t, const std::function<void()>&) {
  if (_Fork() == 0)
    for (;;) pause();
  _exit(3);
}
void leave_a_program_behind(float*, int64_t, const std::function<void()>&) {
  if (_Fork() == 0) {
    execl("/bin/sleep", "sleep", "1000", nullptr);
    _exit(127);
  }
  _exit(3);
}
void end_the_process(float*, int64_t, const std::function<void()>&) { _exit(3); }
void all_42(float* y, int64_t n, const std::function<void()>&) { std::fill(y, y + n, 42.0f); }
void fail_in_checked_mode(float*, int64_t, const std::function<void()>& run) {
  const char *check = std::getenv("TENON_CHECK"), *timeout = std::getenv("TENON_CHECK_TIMEOUT");
  if (check)
    throw Error(TN_CODE_INTERNAL, std::string("in checked mode, stuck after ") + timeout + " s");
  run();
}
void all_more(float* y, int64_t n, const std::function<void()>& run) {
  run();
  for (int64_t i = 0; i < n; ++i) y[i] += 100;
}
void right(float*, int64_t, const std::function<void()>& run) { run(); }
void ignore_children(float*, int64_t, const std::function<void()>& run) {
  run();
  std::signal(SIGCHLD, SIG_IGN);
}
void other_rounding(float*, int64_t, const std::function<void()>& run) {
  run();
  std::fesetround(FE_UPWARD);
}

struct Fault {
  const char *name, *op;
  Around around;
  bool forgets_strides = false;
  uint64_t cost_ns = 0;                                           // 0: as much as the cpu's
  int64_t least = 0, most = std::numeric_limits<int64_t>::max();  // elements; others are refused
  bool changes_input = false;
  int64_t multiple = 1;  // all extents are multiples of it; others are refused
};
constexpr Fault kFaults[] = {
    {"wrong tail", "add", wrong_tail},
    {"wrong gradient", "sigmoid_backward", one_percent_more},
    {"wrong label smoothing", "cross_entropy", one_percent_more},
    {"relies on zeros", "sum", added_to_what_was_there},
    {"writes a byte behind", "neg", byte_behind},
    {"forgets strides", "mul", right, true},
    {"other bits", "exp", other_bits_each_time},
    {"depends on what memory held", "abs", other_bits_after_a_large_number},
    {"keeps what was greater", "maximum", compared_with_what_was_there<std::greater<>>},
    {"keeps what was smaller", "minimum", compared_with_what_was_there<std::less<>>},
    {"swallows NaN", "maximum", swallowed_nan},
    {"none", "relu", right, false, uint64_t{1} << 50},
    {"changes its input", "floor", right, false, 0, 0, 1 << 20, true},
    {"wrong where it is large", "relu", all_more, false, 0, 4096},
    // The size of a variant of the table, which no check but that of repetition has contiguous.
    {"has one size", "relu", right, false, 0, 6435, 6435},
    {"has tiles of 64", "matmul", right, false, 0, 1, 1 << 30, false, 64},
    {"wrong in tiles of 64", "matmul", all_more, false, 0, 1, 1 << 30, false, 64},
    {"wrong gradient in tiles of 64", "sigmoid_backward", one_percent_more, false, 0, 1, 1 << 30,
     false, 64},
    {"42 at a great cost", "relu", all_42, false, uint64_t{1} << 50},
    {"crashes", "tanh", crash},
    {"hangs", "sin", hang},
    {"exits", "cos", end_the_process},
    {"writes to the pipe", "relu", write_to_the_pipe<true>},
    {"writes half a line", "relu", write_to_the_pipe<false>},
    {"leaves a process behind", "cos", leave_a_process_behind},
    {"leaves a program behind", "cos", leave_a_program_behind},
    {"ignores its children", "relu", ignore_children},
    {"fails in checked mode", "relu", fail_in_checked_mode},
    // These do what is wrong outside of the run, too.
    {"is careless with requests", "relu", other_rounding},
    {"is careless with hosts", "relu", right},
};

bool is_asked(std::string_view fault) {
  const char* asked = std::getenv("TENON_TEST_FAULT");
  return asked && fault == asked;
}
bool is_careless_with(const char* what) {
  return is_asked(std::string("is careless with ") + what);
}

const Fault* fault_of(const Request& request) {
  const char* asked = std::getenv("TENON_TEST_FAULT");
  for (auto& fault : kFaults) {
    if (!asked || std::string_view(asked) != fault.name || request.op() != fault.op) continue;
    if (request.output(0).dtype != TN_F32 || !tenon::sdk::is_contiguous(request.output(0)))
      return nullptr;
    const int64_t elements = tenon::sdk::numel(request.output(0));
    if (elements < fault.least || elements > fault.most) return nullptr;
    if (fault.least > 0 && !tenon::sdk::is_contiguous(request.input(0))) return nullptr;
    for (size_t i = 0; i < request.num_inputs(); ++i)
      for (uint32_t d = 0; request.has_input(i) && d < request.input(i).rank; ++d)
        if (request.input(i).shape[d] % fault.multiple) return nullptr;
    if (request.op() == "cross_entropy" && request.get_float("label_smoothing") == 0)
      return nullptr;
    return &fault;
  }
  return nullptr;
}

// The cpu's plan; with `dense`, for inputs that are taken for contiguous.
tn_error* inner_plan(const tn_op_request* request, bool dense, tn_plan** plan) {
  std::vector<tn_tensor_desc> descs;
  std::vector<const tn_tensor_desc*> inputs(request->inputs, request->inputs + request->num_inputs);
  descs.reserve(inputs.size());
  for (auto& in : inputs) {
    // Those with elements in one place have less memory than that.
    const bool steps = in && in->rank > 0 && in->strides[in->rank - 1] > 1;
    if (!dense || !steps) continue;
    descs.push_back(*in);
    int64_t stride = 1;
    for (uint32_t d = in->rank; d-- > 0; stride *= in->shape[d]) descs.back().strides[d] = stride;
    in = &descs.back();
  }
  tn_op_request changed = *request;
  changed.inputs = inputs.data();
  return cpu.plan_create(inner, &changed, plan);
}

tn_error* refuse() {
  constexpr const char* reason = "faulty has only what it is to do wrong";
  if (!is_careless_with("requests")) return make_error(TN_CODE_UNSUPPORTED, reason);
  make_error(TN_CODE_UNSUPPORTED, reason);  // and forgotten
  return make_error(TN_CODE_INTERNAL, reason);
}

tn_error* plan_create(tn_device*, const tn_op_request* asked, tn_plan** plan) {
  const Request request(*asked);
  if (request.op() == "relu" && is_asked("fails to plan"))
    return make_error(TN_CODE_INTERNAL, "the table of kernels is damaged");
  if (request.op() == "relu" && is_asked("makes no plan")) return nullptr;
  if (request.op() == "matmul" && is_asked("has tiles that nobody needs"))
    return make_error(TN_CODE_UNSUPPORTED, "its tiles are of 1000003 x 1000003");
  const Fault* fault = fault_of(request);
  if (!fault) return refuse();
  tn_op_request changed = *asked;
  if (is_careless_with("requests")) changed.num_attrs = 0;
  const tn_op_request* raw = &changed;
  tn_plan* made = nullptr;
  if (tn_error* error = inner_plan(raw, fault->forgets_strides, &made)) return error;
  return guard([&] {
    std::shared_ptr<tn_plan> below(made, [](tn_plan* p) { p->destroy(p); });
    const int64_t n = tenon::sdk::numel(request.output(0));
    *plan = tenon::sdk::make_plan(
        [below, fault, n](const tn_run& run) {
          fault->around(static_cast<float*>(run.outputs[0]), n, [&] {
            if (tn_error* error = below->run(below.get(), &run)) {
              const std::string message = error->message;
              const tn_code code = error->code;
              error->destroy(error);
              throw Error(code, message);
            }
          });
          if (fault->changes_input && n > 0)
            *const_cast<float*>(static_cast<const float*>(run.inputs[0])) += 1;
        },
        {made->workspace_bytes, fault->cost_ns ? fault->cost_ns : made->cost_ns});
  });
}

tn_error* supports(tn_device* device, const tn_op_request* request) {
  if (is_asked("hangs when it is asked")) hang(nullptr, 0, {});
  tn_plan* plan = nullptr;
  if (tn_error* no = plan_create(device, request, &plan)) return no;
  plan->destroy(plan);
  return nullptr;
}

tn_error* device_open(tn_backend*, uint32_t, tn_device** device) {
  static int opened;
  *device = reinterpret_cast<tn_device*>(&opened);
  return nullptr;
}
void device_close(tn_device*) {}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  return guard([&] {
    void* library = dlopen(TENON_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Error(TN_CODE_UNAVAILABLE, dlerror());
    auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
    cpu.struct_size = sizeof cpu;
    tn_error* error = entry->init(host, &cpu);
    if (!error) error = cpu.device_open(cpu.backend, 0, &inner);
    if (error) {
      error->destroy(error);
      throw Error(TN_CODE_UNAVAILABLE, "the cpu plugin does not start");
    }
    tn_backend_api table{};
    table.struct_size = sizeof table;
    table.device_open = device_open;
    table.device_close = device_close;
    table.supports = supports;
    table.plan_create = plan_create;
    if (is_careless_with("hosts")) {
      if (api->struct_size != sizeof table) throw Error(TN_CODE_INTERNAL, "not this host");
      std::atexit([] { crash(nullptr, 0, {}); });
    }
    const size_t size = std::min(api->struct_size, sizeof table);
    std::memcpy(api, &table, size);
    api->struct_size = size;
  });
}

}  // namespace

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::overlay_plugin(TENON_FAULTY_NAME, "1.0", TENON_FAULTY_OVER, 100, init);
