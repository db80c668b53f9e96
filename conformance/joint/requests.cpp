#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <malloc.h>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/checks.h>
#include <tenon/core/error.h>

namespace tenon::conformance::joint {

namespace {

// From plan_create and from supports, both times with the reason.
void must_refuse(Bench& bench, const char* what, const tn_op_request* request) {
  must_fail(fmt::format("supports of {}", what).c_str(),
            bench.planner.supports(bench.planner_device, request), TN_CODE_UNSUPPORTED);
  tn_plan* plan = nullptr;
  tn_error* error = bench.planner.plan_create(bench.planner_device, request, &plan);
  if (!error) bench.planner.destroy(plan);
  must_fail(fmt::format("plan_create of {}", what).c_str(), error, TN_CODE_UNSUPPORTED);
}

void unknown_operator(Bench& bench) {
  Request request("tenon.no_such_operator", 16);
  must_refuse(bench, "an operator that nobody knows", request.get());
  request.raw.op = "";
  must_refuse(bench, "an operator without a name", request.get());
}

void unknown_dtype(Bench& bench) {
  const Operator op = known_operator(bench);
  for (tn_dtype dtype : {99, -1})
    must_refuse(bench, "a dtype that nobody knows", Request(op, op.count, dtype).get());
}

// An operator of a newer core may have one more.
void unknown_attribute(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op, op.count);
  tn_attr attr{};
  attr.struct_size = sizeof attr;
  attr.name = "tenon.no_such_attribute";
  attr.kind = TN_ATTR_INT;
  attr.i = 1;
  request.attrs.push_back(&attr);
  must_refuse(bench, "an attribute that nobody knows", request.get());
}

// As a newer host has them: fields that this plugin cannot know, with any bytes in them.
void longer_structs(Bench& bench) {
  const Operator op = known_operator(bench);
  struct Longer {
    tn_tensor_desc desc;
    unsigned char more[64];
  } descs[3];
  struct {
    tn_op_request raw;
    unsigned char more[64];
  } longer;
  Request request(op, op.count);
  std::memset(&descs, 0xa5, sizeof descs);
  std::memset(&longer, 0xa5, sizeof longer);
  const tn_tensor_desc** const places[] = {&request.inputs[0], &request.inputs[1],
                                           &request.outputs[0]};
  for (size_t i = 0; i < std::size(places); ++i) {
    descs[i].desc = **places[i];
    descs[i].desc.struct_size = sizeof descs[i];
    *places[i] = &descs[i].desc;
  }
  longer.raw = *request.get();
  longer.raw.struct_size = sizeof longer;
  Plan plan(bench, &longer.raw);
  Stream stream(bench);
  const auto count = static_cast<size_t>(op.count);
  Memory x(bench, count * sizeof(float)), y(bench, count * sizeof(float));
  stream.upload(x, std::vector<float>(count, -2));
  plan.run(stream, x, y);
  require(stream.download(y, count) == std::vector<float>(count, op.of_minus_two),
          "{} is wrong where the structs of the request are longer than known", op.name);
}

void short_info(Bench& bench) {
  struct {
    tn_device_info info;
    unsigned char more[256];
  } room;
  const size_t of_1_0 = offsetof(tn_device_info, architecture);
  for (size_t size : {of_1_0, sizeof(tn_device_info), sizeof room}) {
    std::memset(&room, 0xa5, sizeof room);
    std::memset(&room.info, 0, sizeof room.info);  // as the host hands it over
    room.info.struct_size = size;
    must("device_info", bench.api.device_info(bench.device, &room.info));
    auto* bytes = reinterpret_cast<unsigned char*>(&room);
    for (size_t i = size; i < sizeof room; ++i)
      require(bytes[i] == (i < sizeof room.info ? 0 : 0xa5),
              "device_info wrote byte {} of a struct of {}", i, size);
    require(std::memchr(room.info.name, 0, sizeof room.info.name),
            "device_info gives a name that does not end");
  }
}

void index_out_of_range(Bench& bench) {
  if (bench.info.flags & TN_DEVICE_LOGICAL)
    throw Skipped("because the plugin makes devices on request, so every index has one");
  uint32_t count = 0;
  must("device_count", bench.api.device_count(&count));
  tn_device* device = nullptr;
  tn_error* error = bench.api.device_open(count + 1000, &device);
  if (!error) bench.api.device_close(device);
  require(error, "device_open({}) succeeded, and there are {} devices", count + 1000, count);
  error->destroy(error);
}

// Some allocators do not tell how much of theirs is in use.
void require_allocator_to_tell() {
  constexpr size_t bytes = 1 << 16;
  const size_t before = mallinfo2().uordblks;
  void* volatile probe = std::malloc(bytes);
  const size_t after = mallinfo2().uordblks;
  std::free(probe);
  if (after < before + bytes)
    throw Skipped("because the allocator of this process does not tell how much is in use");
}

// The bytes that a turn leaves behind, over a thousand turns or as many as some seconds allow.
size_t left_by(const std::function<void()>& turn) {
  constexpr size_t most = 1000, least = 100;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  const size_t before = mallinfo2().uordblks;
  size_t turns = 0;
  while (turns < most && (turns < least || std::chrono::steady_clock::now() < end)) ++turns, turn();
  const size_t after = mallinfo2().uordblks;
  return after > before ? (after - before) / turns : 0;
}

void must_not_leak(const char* what, const std::function<void()>& turn) {
  require_allocator_to_tell();
  for (size_t i = 0; i < 50; ++i) turn();
  // What is allocated once on the way, or by other threads, is not seen three times.
  size_t bytes = SIZE_MAX;
  for (int i = 0; i < 3 && bytes >= 8; ++i) bytes = std::min(bytes, left_by(turn));
  require(bytes < 8, "{} leaves about {} bytes behind each time", what, bytes);
}

void errors_are_freed(Bench& bench) {
  Request request("tenon.no_such_operator", 16);
  must_not_leak("a refusal by supports", [&] {
    if (tn_error* e = bench.planner.supports(bench.planner_device, request.get())) e->destroy(e);
  });
  must_not_leak("a refusal by plan_create", [&] {
    tn_plan* plan = nullptr;
    if (tn_error* e = bench.planner.plan_create(bench.planner_device, request.get(), &plan))
      e->destroy(e);
  });
}

void plans_are_freed(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op, op.count);
  must_not_leak("a plan that is made and destroyed", [&] {
    tn_plan* plan = nullptr;
    must("plan_create", bench.planner.plan_create(bench.planner_device, request.get(), &plan));
    bench.planner.destroy(plan);
  });
}

}  // namespace

void add_request_checks(const Add& add) {
  add("requests", "an unknown operator is TN_CODE_UNSUPPORTED, with a reason", unknown_operator);
  add("requests", "an unknown dtype is TN_CODE_UNSUPPORTED, with a reason", unknown_dtype);
  add("requests", "an unknown attribute is TN_CODE_UNSUPPORTED, with a reason", unknown_attribute);
  add("requests", "structs of a newer host, which are longer, are read rightly", longer_structs);
  add("errors", "an error leaves nothing behind when it was destroyed", errors_are_freed);
  add("plans", "a plan leaves nothing behind when it was destroyed", plans_are_freed);
}

void add_device_checks(const Add& add) {
  add("requests", "device_info writes no more than the caller has room for", short_info);
  add("requests", "an index that no device has is refused", index_out_of_range);
}

}  // namespace tenon::conformance::joint
