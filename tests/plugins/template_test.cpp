// The template backend computes what docs/operators.md says, and refuses the rest with reasons.
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "desc.h"
#include "plugin_folder.h"

BOOST_AUTO_TEST_SUITE(template_test)

using namespace tenon;
using namespace tenon::test;

struct Template {
  Template() {
    fs::copy_file(tenon::test::build_dir() + "/tests/plugins/fixtures/libtenon_template.so",
                  folder.file("libtenon_template.so"));
    chmod(folder.file("libtenon_template.so").c_str(), 0755);
    folder.write("template.tenon.json", read_text(tenon::test::build_dir() +
                                                  "/tests/plugins/fixtures/template.tenon.json"));
    backend = &registry.load("template");
    device = backend->open_device(3);  // any index: the device is logical
  }

  std::string run(const char* op, std::vector<const tn_tensor_desc*> inputs,
                  const tn_tensor_desc& output, std::vector<void*> data, void* result,
                  std::vector<tn_scalar> scalars = {}) {
    const tn_tensor_desc* outputs[] = {&output};
    tn_op_request request{sizeof request, op, inputs.size(), inputs.data(), 1, outputs,
                          nullptr,        0,  nullptr,       scalars.size()};
    auto* refusal = backend->api().supports(device, &request);
    tn_plan* plan = nullptr;
    auto* error = backend->api().plan_create(device, &request, &plan);
    BOOST_TEST((refusal == nullptr) == (error == nullptr));
    if (refusal) plugins::take_message(refusal);
    if (error) return plugins::take_message(error);
    void* results[] = {result};
    tn_run args{sizeof args, data.data(), results, scalars.data(), nullptr,
                nullptr,     data.size(), 1,       scalars.size(), nullptr};
    BOOST_TEST(!plan->run(plan, &args));
    plan->destroy(plan);
    return "";
  }

  PluginFolder folder;
  Registry registry{folder.only()};
  plugins::Backend* backend;
  tn_device* device;
};

namespace {

tn_scalar f(double v) {
  tn_scalar s;
  s.f = v;
  return s;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(it_describes_itself, Template) {
  auto info = backend->device_info(device);
  BOOST_TEST(std::string(info.name) == "template device 3");
  BOOST_TEST((info.flags & TN_DEVICE_CALLER_THREAD) != 0u);
  BOOST_TEST(info.threads >= 1u);
  // A caller that knows a shorter struct gets no more than it has room for.
  tn_device_info room{};
  room.struct_size = offsetof(tn_device_info, memory_total);
  room.threads = 77;
  BOOST_TEST(!backend->api().device_info(device, &room));
  BOOST_TEST(room.threads == 77u);
}

BOOST_FIXTURE_TEST_CASE(memory_is_aligned_and_a_request_too_large_fails, Template) {
  void* memory = nullptr;
  BOOST_TEST(!backend->api().table().memory_alloc(device, 0, 1000, &memory));
  BOOST_TEST(reinterpret_cast<uintptr_t>(memory) % 64 == 0u);
  std::vector<char> text(1000, 'x');
  tn_copy copy{sizeof copy, memory, text.data(), 1000, device, nullptr};
  BOOST_TEST(!backend->api().copy(device, &copy, nullptr));
  BOOST_TEST(static_cast<char*>(memory)[999] == 'x');
  backend->api().memory_free(device, 0, memory, 1000);
  for (uint64_t bytes : {uint64_t{1} << 60, std::numeric_limits<uint64_t>::max()}) {
    auto* error = backend->api().table().memory_alloc(device, 0, bytes, &memory);
    BOOST_REQUIRE(error);
    BOOST_TEST(error->code == TN_CODE_OUT_OF_MEMORY);
    BOOST_TEST(has(plugins::take_message(error), std::to_string(bytes)));
  }
}

BOOST_FIXTURE_TEST_CASE(pointwise, Template) {
  std::vector<float> a{1, 2, 3, 4, 5, 6}, row{10, 20, 30}, y(6);
  Desc d({2, 3});
  BOOST_TEST(run("add", {&d, &d}, d, {a.data(), a.data()}, y.data()) == "");
  BOOST_TEST(y == (std::vector<float>{2, 4, 6, 8, 10, 12}));
  Desc expanded({2, 3}, TN_F32, {0, 1});
  BOOST_TEST(run("mul", {&d, &expanded}, d, {a.data(), row.data()}, y.data()) == "");
  BOOST_TEST(y == (std::vector<float>{10, 40, 90, 40, 100, 180}));
  BOOST_TEST(run("add", {&d, nullptr}, d, {a.data(), nullptr}, y.data(), {f(0.5)}) == "");
  BOOST_TEST(y == (std::vector<float>{1.5, 2.5, 3.5, 4.5, 5.5, 6.5}));
  BOOST_TEST(run("mul", {&d}, d, {a.data()}, y.data(), {f(-1)}) == "");
  BOOST_TEST(y == (std::vector<float>{-1, -2, -3, -4, -5, -6}));
  // In place.
  BOOST_TEST(run("add", {&d, &d}, d, {y.data(), a.data()}, y.data()) == "");
  BOOST_TEST(y == std::vector<float>(6, 0));
}

BOOST_FIXTURE_TEST_CASE(fill_and_copy_take_any_strides, Template) {
  std::vector<float> a{1, 2, 3, 4, 5, 6}, y(12, -1);
  Desc every_other({2, 3}, TN_F32, {6, 2}), transposed({2, 3}, TN_F32, {1, 2});
  BOOST_TEST(run("fill", {}, every_other, {}, y.data(), {f(7)}) == "");
  BOOST_TEST(y == (std::vector<float>{7, -1, 7, -1, 7, -1, 7, -1, 7, -1, 7, -1}));
  BOOST_TEST(run("copy", {&transposed}, every_other, {a.data()}, y.data()) == "");
  BOOST_TEST(y == (std::vector<float>{1, -1, 3, -1, 5, -1, 2, -1, 4, -1, 6, -1}));
  float value = 0;
  BOOST_TEST(run("fill", {}, Desc({}), {}, &value, {f(3)}) == "");
  BOOST_TEST(value == 3);
}

BOOST_FIXTURE_TEST_CASE(more_elements_than_one_thread_takes, Template) {
  std::vector<float> a(100001, 1), y(a.size());
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i);
  Desc d({100001});
  BOOST_TEST(run("add", {&d}, d, {a.data()}, y.data(), {f(1)}) == "");
  bool right = true;
  for (size_t i = 0; i < y.size(); ++i) right = right && y[i] == static_cast<float>(i + 1);
  BOOST_TEST(right);
}

BOOST_FIXTURE_TEST_CASE(matrix_products, Template) {
  std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 2, 3, 4, 5, 6}, y(4), z(9);
  Desc a23({2, 3}), b32({3, 2}), y22({2, 2}), bt({3, 2}, TN_F32, {1, 3});
  BOOST_TEST(run("matmul", {&a23, &b32}, y22, {a.data(), b.data()}, y.data()) == "");
  BOOST_TEST(y == (std::vector<float>{22, 28, 49, 64}));
  BOOST_TEST(run("matmul", {&a23, &bt}, y22, {a.data(), b.data()}, y.data()) == "");
  BOOST_TEST(y == (std::vector<float>{14, 32, 32, 77}));
  // A batch of three, the second matrix shared.
  Desc a312({3, 1, 2}), b321({3, 2, 1}, TN_F32, {0, 1, 1}), y311({3, 1, 1});
  BOOST_TEST(run("matmul", {&a312, &b321}, y311, {a.data(), b.data()}, z.data()) == "");
  BOOST_TEST((std::vector<float>{z[0], z[1], z[2]} == std::vector<float>{5, 11, 17}));
}

BOOST_FIXTURE_TEST_CASE(nothing_to_do, Template) {
  Desc none({0, 3}), a20({2, 0}), b03({0, 3}), y23({2, 3});
  BOOST_TEST(run("add", {&none, &none}, none, {nullptr, nullptr}, nullptr) == "");
  BOOST_TEST(run("fill", {}, none, {}, nullptr, {f(1)}) == "");
  std::vector<float> y(6, 9);
  BOOST_TEST(run("matmul", {&a20, &b03}, y23, {nullptr, nullptr}, y.data()) == "");
  BOOST_TEST(y == std::vector<float>(6, 0));
  Desc a23({2, 3}), b30({3, 0}), y20({2, 0});
  BOOST_TEST(run("matmul", {&a23, &b30}, y20, {y.data(), nullptr}, nullptr) == "");
}

BOOST_FIXTURE_TEST_CASE(what_it_does_not_do_has_a_reason, Template) {
  Desc d({2, 3}), wide({2, 4}), doubles({2, 3}, TN_F64), vector({3});
  float x = 0;
  BOOST_TEST(has(run("conv2d", {&d}, d, {&x}, &x), "no such operator"));
  BOOST_TEST(has(run("add", {&d, &doubles}, d, {&x, &x}, &x), "f32 only"));
  BOOST_TEST(has(run("fill", {}, doubles, {}, &x, {f(1)}), "f32 only"));
  BOOST_TEST(has(run("add", {&d, &wide}, d, {&x, &x}, &x), "do not fit"));
  BOOST_TEST(has(run("matmul", {&d, &d}, d, {&x, &x}, &x), "do not fit"));
  BOOST_TEST(has(run("matmul", {&vector, &vector}, vector, {&x, &x}, &x), "do not fit"));
  BOOST_TEST(has(run("add", {&d}, d, {&x}, &x), "operand is missing"));
  BOOST_TEST(has(run("matmul", {&d}, d, {&x}, &x), "operand is missing"));
}

BOOST_AUTO_TEST_SUITE_END()
