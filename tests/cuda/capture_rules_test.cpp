// The extension tn.stream_capture by its own rules, without the core, which never breaks them: what
// cannot be recorded is refused, and the recording is as it was.
#include <vector>

#include <boost/test/unit_test.hpp>

#include "cuda/bare.h"
#include "cuda/emulated.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

constexpr int64_t kCount = 1000;

// y = x + number, by a plan of the plugin's, on a stream of its own.
struct Adding {
  Bare gpu{"cuda"};
  const tn_stream_capture& capture =
      *gpu.backend.extension<tn_stream_capture>(TN_EXT_STREAM_CAPTURE, 1);
  float *x = gpu.put(std::vector<float>(kCount, 1)), *y = gpu.put(std::vector<float>(kCount, 0));
  tn_plan* plan = nullptr;

  Adding() {
    tn_tensor_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TN_F32;
    desc.rank = 1;
    desc.shape[0] = kCount;
    desc.strides[0] = 1;
    tn_attr reverse{};
    reverse.struct_size = sizeof reverse;
    reverse.name = "reverse";
    reverse.kind = TN_ATTR_BOOL;
    const tn_tensor_desc *inputs[] = {&desc, nullptr}, *outputs[] = {&desc};
    const tn_attr* attrs[] = {&reverse};
    const tn_op_request request{sizeof request, "add", 2, inputs, 1, outputs, nullptr, 1, attrs, 1};
    ok(gpu.api.plan_create(gpu.device, &request, &plan));
  }
  ~Adding() { plan->destroy(plan); }

  tn_error* run(double number, tn_stream* stream) {
    tn_scalar scalar{};
    scalar.f = number;
    void* in[] = {x, nullptr};
    void* out[] = {y};
    const tn_run args{sizeof args, in, out, &scalar, nullptr, stream, 2, 1, 1, nullptr};
    return plan->run(plan, &args);  // nothing of args needs to live longer
  }
  float result() { return gpu.get(y, kCount)[kCount - 1]; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_recorded_runs_at_each_launch_only) {
  Adding a;
  tn_graph* graph = nullptr;
  ok(a.capture.begin(a.gpu.stream));
  ok(a.run(5, a.gpu.stream));
  ok(a.capture.end(a.gpu.stream, &graph));
  BOOST_TEST(a.result() == 0.0f);
  for (int i = 1; i <= 3; ++i) {
    a.gpu.write(a.x, std::vector<float>(kCount, static_cast<float>(i)));
    ok(a.capture.launch(graph, a.gpu.stream));
    BOOST_TEST(a.result() == static_cast<float>(i + 5));
  }
  ok(a.run(100, a.gpu.stream));  // the stream runs again, and the plan
  BOOST_TEST(a.result() == 103.0f);
  ok(a.capture.launch(graph, a.gpu.stream));
  BOOST_TEST(a.result() == 8.0f);
  a.capture.destroy(graph);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_recorded_is_refused_and_nothing_is_spoilt) {
  Adding a;
  auto& api = a.gpu.api;
  tn_graph *first = nullptr, *graph = nullptr;
  ok(a.capture.begin(a.gpu.stream));
  ok(a.capture.end(a.gpu.stream, &first));  // of no work
  tn_event *event = nullptr, *recorded = nullptr;
  ok(api.event_create(a.gpu.device, &event));
  ok(api.event_create(a.gpu.device, &recorded));
  ok(api.event_record(recorded, a.gpu.stream));
  float host = 7;
  const tn_copy in{sizeof in, a.x, &host, sizeof host, a.gpu.device, nullptr},
      out{sizeof out, &host, a.x, sizeof host, nullptr, a.gpu.device};
  ok(a.capture.begin(a.gpu.stream));
  refused(a.capture.begin(a.gpu.stream), TN_CODE_INVALID_ARGUMENT, "being captured already");
  for (auto* c : {&in, &out})
    refused(api.copy(a.gpu.device, c, a.gpu.stream), TN_CODE_INVALID_ARGUMENT,
            "a copy between memories cannot be part of");
  refused(api.event_record(event, a.gpu.stream), TN_CODE_INVALID_ARGUMENT,
          "recording an event cannot be part of");
  refused(api.stream_wait(a.gpu.stream, recorded), TN_CODE_INVALID_ARGUMENT,
          "waiting for an event cannot be part of");
  refused(a.capture.launch(first, a.gpu.stream), TN_CODE_INVALID_ARGUMENT,
          "the launch of a graph cannot be part of");
  ok(a.run(2, a.gpu.stream));
  ok(a.capture.end(a.gpu.stream, &graph));
  ok(a.capture.launch(graph, a.gpu.stream));
  BOOST_TEST(a.result() == 3.0f);
  tn_graph* none = nullptr;
  refused(a.capture.end(a.gpu.stream, &none), TN_CODE_INVALID_ARGUMENT, "is not being captured");
  BOOST_TEST(!none);
  for (auto* g : {first, graph}) a.capture.destroy(g);
  for (auto* e : {event, recorded}) api.event_destroy(e);
}

namespace {

tn_tensor_desc vector_of(tn_dtype dtype, int64_t size) {
  tn_tensor_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = dtype;
  desc.rank = 1;
  desc.shape[0] = size;
  desc.strides[0] = 1;
  return desc;
}

// Three elements of ten by their positions, of which the second is 17.
struct Selecting {
  Bare gpu{"cuda"};
  const tn_stream_capture& capture =
      *gpu.backend.extension<tn_stream_capture>(TN_EXT_STREAM_CAPTURE, 1);
  float *x = gpu.put(std::vector<float>(10, 1)), *y = gpu.put(std::vector<float>(3, 0));
  int64_t* index = gpu.put(std::vector<int64_t>{2, 17, 0});
  tn_plan* plan = nullptr;

  Selecting() {
    const tn_tensor_desc ten = vector_of(TN_F32, 10), at = vector_of(TN_I64, 3),
                         three = vector_of(TN_F32, 3);
    tn_attr dim{};
    dim.struct_size = sizeof dim;
    dim.name = "dim";
    dim.kind = TN_ATTR_INT;
    const tn_tensor_desc *inputs[] = {&ten, &at}, *outputs[] = {&three};
    const tn_attr* attrs[] = {&dim};
    const tn_op_request request{sizeof request, "index_select", 2, inputs, 1,
                                outputs,        nullptr,        1, attrs,  0};
    ok(gpu.api.plan_create(gpu.device, &request, &plan));
  }
  ~Selecting() { plan->destroy(plan); }

  tn_graph* captured_on(tn_stream* stream) {
    tn_graph* graph = nullptr;
    ok(capture.begin(stream));
    void *in[] = {x, index}, *out[] = {y};
    const tn_run args{sizeof args, in, out, nullptr, nullptr, stream, 2, 1, 0, nullptr};
    ok(plan->run(plan, &args));
    ok(capture.end(stream, &graph));
    return graph;
  }
  tn_error* wait_for(tn_stream* stream) {
    tn_event* event = nullptr;
    ok(gpu.api.event_create(gpu.device, &event));
    ok(gpu.api.event_record(event, stream));
    tn_error* error = gpu.api.event_wait(event);
    gpu.api.event_destroy(event);
    return error;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_graph_meets_is_told_to_the_stream_that_it_ran_on) {
  Selecting s;
  tn_stream* other = nullptr;
  ok(s.gpu.api.stream_create(s.gpu.device, &other));
  tn_graph* graph = s.captured_on(other);
  for (int i = 0; i < 2; ++i) {
    ok(s.capture.launch(graph, s.gpu.stream));
    refused(s.wait_for(s.gpu.stream), TN_CODE_OUT_OF_RANGE,
            "index 17 at position 1 is outside [0, 10)");
    ok(s.wait_for(other));         // it ran nothing
    ok(s.wait_for(s.gpu.stream));  // told once
  }
  // The graph outlives the stream that it was captured on.
  s.gpu.api.stream_destroy(other);
  ok(s.capture.launch(graph, s.gpu.stream));
  refused(s.wait_for(s.gpu.stream), TN_CODE_OUT_OF_RANGE,
          "index 17 at position 1 is outside [0, 10)");
  s.capture.destroy(graph);
  ok(s.wait_for(s.gpu.stream));
}

BOOST_AUTO_TEST_CASE(an_event_outlives_its_stream) {
  Selecting s;
  tn_stream* other = nullptr;
  ok(s.gpu.api.stream_create(s.gpu.device, &other));
  void *in[] = {s.x, s.index}, *out[] = {s.y};
  const tn_run args{sizeof args, in, out, nullptr, nullptr, other, 2, 1, 0, nullptr};
  ok(s.plan->run(s.plan, &args));
  tn_event* event = nullptr;
  ok(s.gpu.api.event_create(s.gpu.device, &event));
  ok(s.gpu.api.event_record(event, other));
  s.gpu.api.stream_destroy(other);
  refused(s.gpu.api.event_wait(event), TN_CODE_OUT_OF_RANGE,
          "index 17 at position 1 is outside [0, 10)");
  s.gpu.api.event_destroy(event);
}

BOOST_AUTO_TEST_CASE(all_else_goes_on_while_a_stream_captures) {
  Adding a;
  auto& api = a.gpu.api;
  tn_event* before = nullptr;
  ok(api.event_create(a.gpu.device, &before));
  ok(api.event_record(before, a.gpu.stream));
  tn_stream* other = nullptr;
  ok(api.stream_create(a.gpu.device, &other));

  ok(a.capture.begin(a.gpu.stream));
  ok(a.run(1, a.gpu.stream));
  int32_t done = 0;
  ok(api.event_wait(before));
  ok(api.event_query(before, &done));
  BOOST_TEST(done == 1);
  void* memory = nullptr;
  ok(api.memory_alloc(a.gpu.device, 0, 1 << 20, &memory));
  api.memory_free(a.gpu.device, 0, memory, 1 << 20);
  ok(a.run(40, other));
  tn_event* there = nullptr;
  ok(api.event_create(a.gpu.device, &there));
  ok(api.event_record(there, other));
  ok(api.event_wait(there));
  tn_graph* graph = nullptr;
  ok(a.capture.end(a.gpu.stream, &graph));

  BOOST_TEST(a.result() == 41.0f);
  ok(a.capture.launch(graph, other));  // on any stream of the device
  ok(api.event_record(there, other));
  ok(api.event_wait(there));
  BOOST_TEST(a.result() == 2.0f);
  a.capture.destroy(graph);
  for (auto* e : {before, there}) api.event_destroy(e);
  api.stream_destroy(other);
}

// The last case, because the plugin takes it for the end of the process.
BOOST_AUTO_TEST_CASE(drain_waits_for_streams_and_leaves_a_recording_as_it_is) {
  Adding a;
  auto& api = a.gpu.api;
  tn_stream* other = nullptr;
  ok(api.stream_create(a.gpu.device, &other));
  ok(a.capture.begin(a.gpu.stream));
  ok(a.run(1, a.gpu.stream));
  ok(a.run(40, other));
  std::vector<float> found(kCount);
  const tn_copy to_host{sizeof to_host,         found.data(), a.y,
                        kCount * sizeof(float), nullptr,      a.gpu.device};
  ok(api.copy(a.gpu.device, &to_host, other));
  ok(api.drain(api.backend));
  BOOST_TEST(found[kCount - 1] == 41.0f);

  tn_graph* graph = nullptr;
  ok(a.capture.end(a.gpu.stream, &graph));
  ok(a.capture.launch(graph, a.gpu.stream));
  BOOST_TEST(a.result() == 2.0f);
  a.capture.destroy(graph);
  api.stream_destroy(other);
}
