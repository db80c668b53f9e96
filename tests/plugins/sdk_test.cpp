// The SDK's help for backends: tables and facts about devices, kernels that register themselves,
// plans that are queued, streams and events on threads, and vendor code on the host's threads.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/streams.h>
#include <tenon/plugins/sdk/threads.h>

#include "plugin_folder.h"

#ifdef TENON_TEST_OPENMP
int threads_of_a_vendor();  // fixtures/vendor_openmp.cpp
#endif

BOOST_AUTO_TEST_SUITE(sdk_test)

using namespace tenon;
using namespace tenon::sdk;
namespace sdk = tenon::sdk;
using tenon::test::has;

namespace {

// Ends an error and returns what it said: "3: text [key=value]".
std::string said(tn_error* e) {
  if (!e) return "";
  std::string text = std::to_string(e->code) + ": " + e->message;
  for (size_t i = 0; i < e->num_details; ++i)
    text += std::string(" [") + e->details[i].key + "=" + e->details[i].value + "]";
  e->destroy(e);
  return text;
}

struct Stream : ThreadStream {};
struct Event : ThreadEvent {};

// A device with the SDK's streams.
struct Machine {
  Machine() { fill_streams<Stream, Event>(api); }

  tn_stream* stream() {
    tn_stream* made = nullptr;
    BOOST_REQUIRE(!api.stream_create(nullptr, &made));
    return made;
  }
  tn_event* event() {
    tn_event* made = nullptr;
    BOOST_REQUIRE(!api.event_create(nullptr, &made));
    return made;
  }
  static void push(tn_stream* stream, ThreadStream::Task task) {
    reinterpret_cast<Stream*>(stream)->push(std::move(task));
  }
  bool done(tn_event* event) {
    int32_t done = -1;
    BOOST_TEST(said(api.event_query(event, &done)) == "");
    return done != 0;
  }
  tn_backend_api api{};
};

// Two threads that share the work, as the host's do.
const tn_host two_threads{sizeof(tn_host),
                          TN_ABI_MAJOR,
                          TN_ABI_MINOR,
                          nullptr,
                          "",
                          [](void*, tn_log_level, const char*) {},
                          [](void*) -> uint32_t { return 2; },
                          [](void*, int64_t n, int64_t, tn_loop_body body, void* context) {
                            std::thread other([&] { body(context, 0, n / 2, 1); });
                            body(context, n / 2, n, 0);
                            other.join();
                          }};

}  // namespace

BOOST_AUTO_TEST_CASE(errors_of_others_may_have_holes) {
  const tn_key_value holes[] = {{nullptr, "1"}, {"b", nullptr}};
  const tn_error silent{sizeof(tn_error), TN_CODE_INTERNAL, nullptr, 2, holes, nullptr};
  BOOST_TEST(said(copy_error(silent)) == "7:  [?=1] [b=?]");
}

BOOST_AUTO_TEST_CASE(a_table_is_filled_as_far_as_the_host_has_room) {
  tn_backend_api table{}, room{};
  table.drain = [](tn_backend*) -> tn_error* { return nullptr; };
  table.plan_create = plan_of_kernels;
  room.struct_size = TN_BACKEND_API_SIZE_1_0;
  BOOST_TEST(said(fill_table(&room, table)) == "");
  BOOST_TEST(room.struct_size == size_t{TN_BACKEND_API_SIZE_1_0});
  BOOST_TEST((room.plan_create == plan_of_kernels && !room.drain));
  room.struct_size = sizeof room + 100;
  BOOST_TEST(said(fill_table(&room, table)) == "");
  BOOST_TEST(room.struct_size == sizeof room);
  BOOST_TEST((room.drain == table.drain));
  room.struct_size = 40;
  BOOST_TEST(said(fill_table(&room, table)) ==
             "3: the host's table has 40 bytes, ABI 1.0 needs 160");
}

BOOST_AUTO_TEST_CASE(facts_are_cut_to_the_room_that_there_is) {
  tn_device_info info{};
  info.struct_size = sizeof info;
  std::string name = "x";
  while (name.size() < 200) name += "\xc3\xa4";  // letters of two bytes each
  fill_info(&info, {.flags = TN_DEVICE_LOGICAL,
                    .name = name,
                    .memory_total = 7,
                    .threads = 3,
                    .architecture = "sm_90",
                    .driver = std::string_view("not ended", 3)});
  BOOST_TEST(std::string(info.name) == name.substr(0, 127));
  BOOST_TEST((info.flags == TN_DEVICE_LOGICAL && info.memory_total == 7 && info.threads == 3));
  BOOST_TEST(std::string(info.architecture) == "sm_90");
  BOOST_TEST(std::string(info.driver) == "not");
  name = name.substr(1, 200);
  fill_info(&info, {.name = name});
  BOOST_TEST(std::string(info.name) == name.substr(0, 126));  // not half a letter
  // A host of ABI 1.0 has room for less.
  std::memset(static_cast<void*>(&info), 0x5a, sizeof info);
  info.struct_size = offsetof(tn_device_info, reserved);
  fill_info(&info, {.name = "npu", .architecture = "a", .driver = "d"});
  BOOST_TEST(info.struct_size == offsetof(tn_device_info, reserved));
  BOOST_TEST(std::string(info.name) == "npu");
  BOOST_TEST((info.reserved == 0x5a5a5a5au && info.driver[0] == 0x5a));
}

BOOST_AUTO_TEST_CASE(memory_of_the_host) {
  const tn_memory_kind* const* kinds = nullptr;
  size_t count = 0;
  BOOST_TEST(!host_memory_kinds(nullptr, &kinds, &count));
  BOOST_REQUIRE(count == 1u);
  BOOST_TEST(kinds[0]->alignment == 64u);
  void* memory = nullptr;
  BOOST_TEST(!host_memory_alloc(nullptr, 0, 100, &memory));
  BOOST_TEST(reinterpret_cast<uintptr_t>(memory) % 64 == 0u);
  host_memory_free(nullptr, 0, memory, 100);
  for (uint64_t bytes : {uint64_t{1} << 60, ~uint64_t{0}})
    BOOST_TEST(has(said(host_memory_alloc(nullptr, 0, bytes, &memory)), "4: cannot allocate"));
  BOOST_TEST(said(host_memory_alloc(nullptr, 1, 8, &memory)) == "1: there is no memory kind 1");
}

BOOST_AUTO_TEST_CASE(a_kernel_without_a_plan_or_a_reason_is_an_error) {
  static const Kernel registration({"sdk_test_nothing"},
                                   [](tn_device*, const Request&) -> tn_plan* { return nullptr; });
  tn_op_request request{};
  request.struct_size = sizeof request;
  request.op = "sdk_test_nothing";
  tn_plan* plan = nullptr;
  BOOST_TEST(
      has(said(plan_of_kernels(nullptr, &request, &plan)), "returned no plan and no reason"));
  request.op = "sdk_test_unknown";
  BOOST_TEST(has(said(plan_of_kernels(nullptr, &request, &plan)), "3: no kernel for operator"));
  BOOST_TEST(!plan);
}

BOOST_AUTO_TEST_CASE(two_kernels_for_one_operator_are_an_error_of_the_plugin) {
  test::PluginFolder folder;
  folder.add("twice", {{"name", "twice"}});
  test::Registry registry(folder.only());
  BOOST_CHECK_EXCEPTION(registry.load("twice"), PluginError, [](const PluginError& e) {
    return has(e.what(), "two kernels are registered for operator \"relu\"");
  });
}

BOOST_AUTO_TEST_CASE(a_queued_run_owns_its_arguments) {
  Machine machine;
  auto* stream = machine.stream();
  std::vector<float> x{1, 2, 3}, y(3);
  bool as_queued = true;
  tn_op_request request{};
  request.struct_size = sizeof request;
  request.op = "scale";
  request.num_inputs = 2;  // the second is absent
  request.num_outputs = request.num_scalars = 1;
  auto* plan = make_queued_plan(
      make_plan(
          [&](const tn_run& run) {
            if (run.scalars[0].f < 0)
              throw sdk::Error(TN_CODE_OUT_OF_RANGE, "less than 0", {{"index", "3"}});
            as_queued = as_queued && run.num_inputs == 2 && !run.inputs[1] &&
                        run.num_outputs == 1 && run.num_scalars == 1 && !run.stream &&
                        !run.workspace &&
                        sdk::input_version(run, 0) == (run.scalars[0].f == 1 ? 7 : 0);
            for (int i = 0; i < 3; ++i)
              static_cast<float*>(run.outputs[0])[i] +=
                  static_cast<const float*>(run.inputs[0])[i] *
                  static_cast<float>(run.scalars[0].f);
          },
          {.workspace_bytes = 0, .cost_ns = 5, .flags = TN_PLAN_INPUT_VERSIONS}),
      request, Machine::push);
  BOOST_TEST(plan->cost_ns == 5u);
  BOOST_TEST(plan->flags == TN_PLAN_INPUT_VERSIONS);
  // Nothing runs before all is queued, and until then every argument is overwritten.
  std::promise<void> go;
  Machine::push(stream, [&, gate = go.get_future().share()] { gate.wait(); });
  void *in[2], *out[1];
  tn_scalar scalar;
  auto queue = [&](double factor, size_t size) {
    in[0] = x.data(), in[1] = nullptr, out[0] = y.data(), scalar.f = factor;
    // Under a host of ABI 1.1 there are neither counts nor versions.
    uint64_t versions[] = {7, 0};
    tn_run run{size, in, out, &scalar, nullptr, stream, 99, 99, 99, versions};
    BOOST_TEST(said(plan->run(plan, &run)) == "");
    std::memset(in, 0x5a, sizeof in), std::memset(out, 0x5a, sizeof out), scalar.f = 1e9;
    versions[0] = 99;
  };
  queue(1, sizeof(tn_run));
  queue(10, offsetof(tn_run, num_inputs));
  queue(-1, sizeof(tn_run));
  go.set_value();
  auto* event = machine.event();
  BOOST_TEST(!machine.api.event_record(event, stream));
  BOOST_TEST(said(machine.api.event_wait(event)) == "2: less than 0 [index=3] [op=scale]");
  BOOST_TEST(y == std::vector<float>({11, 22, 33}), boost::test_tools::per_element());
  BOOST_TEST(as_queued);
  plan->destroy(plan);
  machine.api.event_destroy(event);
  machine.api.stream_destroy(stream);
}

BOOST_AUTO_TEST_CASE(streams_wait_for_each_other_through_events) {
  Machine machine;
  auto *first = machine.stream(), *second = machine.stream();
  auto *event = machine.event(), *last = machine.event();
  BOOST_TEST(machine.done(event));  // never recorded
  BOOST_TEST(!machine.api.stream_wait(second, event));
  std::promise<void> go;
  std::vector<int> order;  // only ever touched by one stream at a time, if they wait
  Machine::push(first, [&, gate = go.get_future().share()] {
    gate.wait();
    order.push_back(1);
  });
  BOOST_TEST(!machine.api.event_record(event, first));
  Machine::push(first, [&] { order.push_back(2); });
  BOOST_TEST(!machine.api.event_record(event, first));  // again: the wait below is for this one
  BOOST_TEST(!machine.api.stream_wait(second, event));
  Machine::push(second, [&] { order.push_back(3); });
  BOOST_TEST(!machine.api.event_record(last, second));
  BOOST_TEST(!machine.done(event));
  BOOST_TEST(!machine.done(last));
  go.set_value();
  BOOST_TEST(said(machine.api.event_wait(last)) == "");
  BOOST_TEST(machine.done(event));
  BOOST_TEST(order == std::vector<int>({1, 2, 3}), boost::test_tools::per_element());
  // Destroyed before it is reached: the stream does without it.
  auto* lost = machine.event();
  BOOST_TEST(!machine.api.event_record(lost, first));
  machine.api.event_destroy(lost);
  for (auto* e : {event, last}) machine.api.event_destroy(e);
  for (auto* s : {first, second}) machine.api.stream_destroy(s);
}

BOOST_AUTO_TEST_CASE(events_tell_how_long_it_is_from_one_to_another) {
  Machine machine;
  auto& api = machine.api;
  BOOST_TEST(!api.extension(nullptr, TN_EXT_PROFILING, 2));
  BOOST_TEST(!api.extension(nullptr, TN_EXT_COLLECTIVES, 1));
  auto* times = static_cast<const tn_profiling*>(api.extension(nullptr, TN_EXT_PROFILING, 1));
  BOOST_REQUIRE(times);
  auto* stream = machine.stream();
  auto *begin = machine.event(), *end = machine.event();
  double milliseconds = -1;
  BOOST_TEST(said(times->elapsed(begin, end, &milliseconds)) ==
             "1: the event has no time, because it was never recorded");
  std::promise<void> go;
  BOOST_TEST(!api.event_record(begin, stream));
  Machine::push(stream, [&] {
    go.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  BOOST_TEST(!api.event_record(end, stream));
  BOOST_TEST(said(api.event_wait(begin)) == "");
  BOOST_TEST(said(times->elapsed(begin, end, &milliseconds)) ==
             "1: the event has no time, because it is not reached yet");
  go.set_value();
  BOOST_TEST(said(api.event_wait(end)) == "");
  BOOST_TEST(said(times->elapsed(begin, end, &milliseconds)) == "");
  BOOST_TEST(milliseconds >= 2);
  for (auto* e : {begin, end}) api.event_destroy(e);
  api.stream_destroy(stream);
  // A plugin's own function is kept.
  tn_backend_api own{};
  own.extension = [](tn_backend*, const char*, uint32_t) -> const void* { return nullptr; };
  const auto before = own.extension;
  fill_streams<Stream, Event>(own);
  BOOST_TEST((own.extension == before));
}

BOOST_AUTO_TEST_CASE(the_next_event_reports_the_first_error_and_the_stream_goes_on) {
  Machine machine;
  auto* stream = machine.stream();
  auto *before = machine.event(), *after = machine.event(), *later = machine.event();
  BOOST_TEST(!machine.api.event_record(before, stream));
  Machine::push(stream, [] { throw sdk::Error(TN_CODE_OUT_OF_RANGE, "the first", {{"op", "a"}}); });
  Machine::push(stream, [] { throw std::runtime_error("the second"); });
  BOOST_TEST(!machine.api.event_record(after, stream));
  std::atomic<bool> ran{false};
  Machine::push(stream, [&] { ran = true; });
  BOOST_TEST(!machine.api.event_record(later, stream));
  BOOST_TEST(said(machine.api.event_wait(later)) == "");
  BOOST_TEST(ran.load());
  BOOST_TEST(said(machine.api.event_wait(before)) == "");
  for (int i = 0; i < 2; ++i)  // each who asks gets an object of his own
    BOOST_TEST(said(machine.api.event_wait(after)) == "2: the first [op=a]");
  int32_t done = 0;
  BOOST_TEST(said(machine.api.event_query(after, &done)) == "2: the first [op=a]");
  BOOST_TEST(done == 1);
  // Recorded again, it is about what came since.
  BOOST_TEST(!machine.api.event_record(after, stream));
  BOOST_TEST(said(machine.api.event_wait(after)) == "");
  for (auto* e : {before, after, later}) machine.api.event_destroy(e);
  machine.api.stream_destroy(stream);
}

BOOST_AUTO_TEST_CASE(draining_and_destroying_wait_for_all_work) {
  Machine machine;
  auto *first = machine.stream(), *second = machine.stream();
  std::atomic<int> count{0};
  for (int i = 0; i < 100; ++i)
    for (auto* s : {first, second}) Machine::push(s, [&] { ++count; });
  BOOST_TEST(said(machine.api.drain(nullptr)) == "");
  BOOST_TEST(count.load() == 200);
  for (int i = 0; i < 100; ++i) Machine::push(first, [&] { ++count; });
  std::vector<float> from{1, 2, 3}, to(3);
  const tn_copy copy{sizeof copy, to.data(), from.data(), 12, nullptr, nullptr};
  BOOST_TEST(said(queue_host_copy<Stream>(nullptr, &copy, first)) == "");
  machine.api.stream_destroy(first);
  BOOST_TEST(count.load() == 300);
  BOOST_TEST(to == from, boost::test_tools::per_element());
  machine.api.stream_destroy(second);
  BOOST_TEST(said(machine.api.drain(nullptr)) == "");
}

BOOST_AUTO_TEST_CASE(the_hosts_threads_as_a_pool) {
  struct Interface {  // of oneDNN's form
    virtual ~Interface() = default;
    virtual int get_num_threads() const = 0;
    virtual bool get_in_parallel() const = 0;
    virtual void parallel_for(int n, const std::function<void(int, int)>& fn) = 0;
    virtual uint64_t get_flags() const = 0;
  };
  HostPool<Interface> pool(two_threads);
  Interface& given = pool;
  BOOST_TEST(given.get_num_threads() == 2);
  BOOST_TEST(given.get_flags() == 0u);
  BOOST_TEST(!given.get_in_parallel());
  std::vector<int> seen(7, 0);
  std::atomic<int> outside{0};
  given.parallel_for(7, [&](int i, int n) {
    seen[static_cast<size_t>(i)] += n;
    if (!given.get_in_parallel()) ++outside;
  });
  BOOST_TEST(seen == std::vector<int>(7, 7), boost::test_tools::per_element());
  BOOST_TEST(outside.load() == 0);
  BOOST_TEST(!given.get_in_parallel());
  BOOST_CHECK_EXCEPTION(given.parallel_for(4, [](int, int) { unsupported("too small"); }),
                        sdk::Error, [](const sdk::Error& e) { return has(e.what(), "too small"); });
}

#ifdef TENON_TEST_OPENMP
BOOST_AUTO_TEST_CASE(a_vendors_openmp_has_one_thread_in_each_part) {
  std::thread([] {  // a thread of its own: the number of threads belongs to it
    omp_set_num_threads(3);
    BOOST_TEST(threads_of_a_vendor() == 3);
    {
      SingleThreadedOpenMP single;
      SingleThreadedOpenMP nested;
      BOOST_TEST(threads_of_a_vendor() == 1);
    }
    BOOST_TEST(threads_of_a_vendor() == 3);
    std::atomic<int> most{0}, parts{0};
    parallel_for_vendor(two_threads, 100, 1, [&](int64_t, int64_t, uint32_t) {
      ++parts;
      if (threads_of_a_vendor() != 1) ++most;
    });
    BOOST_TEST(parts.load() == 2);
    BOOST_TEST(most.load() == 0);
    BOOST_TEST(threads_of_a_vendor() == 3);
  })
      .join();
}
#endif

BOOST_AUTO_TEST_SUITE_END()
