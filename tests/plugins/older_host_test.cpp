// A plugin of today under a host of ABI 1.0: this file uses the frozen header and, of Tenon itself,
// only the table of dtypes.
#include <array>
#include <cstring>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <dlfcn.h>

#include <tenon/core/dispatch/abi_dtypes.h>

#include "fixtures/abi_1_0.h"
#include "places.h"

BOOST_AUTO_TEST_SUITE(older_host_test)

static_assert(TN_ABI_MINOR == 0, "today's header has come in");

namespace {

const std::string library = tenon::test::build_dir() + "/tests/sim/libtenon_sim.so";
const tn_host host{
    sizeof(tn_host),
    TN_ABI_MAJOR,
    TN_ABI_MINOR,
    nullptr,
    library.c_str(),
    [](void*, tn_log_level, const char*) {},
    [](void*) -> uint32_t { return 1; },
    [](void*, int64_t n, int64_t, tn_loop_body body, void* context) { body(context, 0, n, 0); }};

void require_ok(tn_error* error) { BOOST_REQUIRE_MESSAGE(!error, (error ? error->message : "")); }

// A struct as a host of 1.0 allocates it, and bytes behind it that nobody may touch.
template <class T>
struct Fenced {
  T value{};
  std::array<unsigned char, 256> fence;
  Fenced() {
    value.struct_size = sizeof(T);
    fence.fill(0x5a);
  }
  bool intact() const {
    for (auto b : fence)
      if (b != 0x5a) return false;
    return true;
  }
};

tn_tensor_desc vector_of(int64_t n) {
  tn_tensor_desc d{};
  d.struct_size = sizeof d;
  d.rank = 1;
  d.shape[0] = n;
  d.strides[0] = 1;
  return d;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_plugin_of_1_1_fills_and_reads_what_1_0_has) {
  void* library = dlopen(host.plugin_path, RTLD_NOW | RTLD_LOCAL);
  BOOST_REQUIRE_MESSAGE(library, dlerror());
  auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
  BOOST_REQUIRE(entry);
  BOOST_TEST(entry->abi_major == TN_ABI_MAJOR);
  BOOST_TEST(entry->abi_minor >= 1u);
  BOOST_TEST(entry->struct_size == sizeof(tn_plugin_info));

  Fenced<tn_backend_api> table;
  require_ok(entry->init(&host, &table.value));
  BOOST_TEST(table.intact());
  BOOST_TEST(table.value.struct_size <= sizeof(tn_backend_api));
  auto& api = table.value;

  tn_device* device = nullptr;
  require_ok(api.device_open(api.backend, 0, &device));
  Fenced<tn_device_info> info;
  require_ok(api.device_info(device, &info.value));
  BOOST_TEST(info.intact());
  BOOST_TEST(std::string(info.value.name).find("simulated") == 0u);

  // Work from end to end: x + x.
  const tn_memory_kind* const* kinds = nullptr;
  size_t count = 0;
  require_ok(api.memory_kinds(device, &kinds, &count));
  BOOST_TEST(kinds[0]->struct_size >= sizeof(tn_memory_kind));
  void *x = nullptr, *y = nullptr;
  require_ok(api.memory_alloc(device, 0, 64, &x));
  require_ok(api.memory_alloc(device, 0, 64, &y));
  tn_stream* stream = nullptr;
  tn_event* event = nullptr;
  require_ok(api.stream_create(device, &stream));
  require_ok(api.event_create(device, &event));
  std::vector<float> values{1, 2, 3, 4}, result(4);
  tn_copy in{sizeof(tn_copy), x, values.data(), 16, device, nullptr},
      out{sizeof(tn_copy), result.data(), y, 16, nullptr, device};
  require_ok(api.copy(device, &in, stream));

  auto desc = vector_of(4);
  const tn_tensor_desc* inputs[] = {&desc, &desc};
  const tn_tensor_desc* outputs[] = {&desc};
  tn_op_request request{};
  request.struct_size = sizeof request;
  request.op = "add";
  request.num_inputs = 2;
  request.inputs = inputs;
  request.num_outputs = 1;
  request.outputs = outputs;
  // A host of 1.0 asks before it plans, and must be told the truth.
  request.op = "something of tomorrow";
  tn_error* no = api.supports(device, &request);
  BOOST_REQUIRE(no);
  BOOST_TEST(no->code == TN_CODE_UNSUPPORTED);
  no->destroy(no);
  request.op = "add";
  require_ok(api.supports(device, &request));
  tn_plan* plan = nullptr;
  require_ok(api.plan_create(device, &request, &plan));
  void* from[] = {x, x};
  void* to[] = {y};
  tn_run run{sizeof run, from, to, nullptr, nullptr, stream};
  require_ok(plan->run(plan, &run));
  require_ok(api.copy(device, &out, stream));
  require_ok(api.event_record(event, stream));
  require_ok(api.event_wait(event));
  BOOST_TEST(result == std::vector<float>({2, 4, 6, 8}), boost::test_tools::per_element());

  plan->destroy(plan);
  api.event_destroy(event);
  api.stream_destroy(stream);
  api.memory_free(device, 0, x, 64);
  api.memory_free(device, 0, y, 64);
  api.device_close(device);
}

BOOST_AUTO_TEST_CASE(a_plugin_of_1_0_is_asked_for_the_dtypes_of_its_header_and_no_others) {
  for (int32_t value = 0; value < 32; ++value)
    BOOST_TEST(
        tenon::abi_knows(TN_ABI_MINOR, static_cast<tenon::DType>(value)) == (value <= TN_BOOL),
        "dtype " << value);
}

BOOST_AUTO_TEST_SUITE_END()
