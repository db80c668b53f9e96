// Files whose operators have inputs that no call of the library has: of another size or dtype, over
// the memory that they change, or of memory that nothing has written.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <tenon/serialization/tensor_copy.h>
#include <tenon/tenon.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(program_inputs_test)

using namespace tenon;
using nlohmann::json;

namespace {

// A program whose values are tensors of the file, and after them those that it makes.
struct Made {
  json values = json::array(), names = json::array(), nodes = json::array(),
       results = json::array();
  int draws = 0;
  std::vector<std::pair<std::string, Tensor>> tensors;

  Made& tensor(const Tensor& t) {
    const std::string name = "t" + std::to_string(tensors.size());
    values.push_back(
        {"tensor", names.size(), t.numel() * static_cast<int64_t>(size_of(t.dtype()))});
    names.push_back(name);
    tensors.emplace_back(name, t);
    return *this;
  }
  Made& inside(int64_t bytes) { return values.push_back({"inside", 0, bytes}), *this; }
  Made& node(json node) {
    const json common = {{"attributes", json::array()},
                         {"scalars", json::array()},
                         {"wanted", 1},
                         {"format", 0},
                         {"flat", false}};
    for (auto& [key, value] : common.items())
      if (!node.contains(key)) node[key] = value;
    draws += node.contains("draw");
    return nodes.push_back(std::move(node)), *this;
  }
  Made& result(int value, const json& tensor) {
    results.push_back({{"name", "y"}, {"at", {value, 0}}, {"tensor", tensor}});
    return *this;
  }

  Program load() {
    TempFolder folder;
    const std::string text = json{
        {"program_version", 1}, {"device", "cpu:0"},        {"random", {0, 0}},
        {"draws", draws},       {"values", values},         {"inputs", json::array()},
        {"tensors", names},     {"numbers", json::array()}, {"results", results},
        {"nodes", nodes}}.dump();
    auto all = tensors;
    all.emplace_back(
        "@program/graph",
        from_host(text.data(), u8, {static_cast<int64_t>(text.size())}, {.dtype = u8}));
    TensorSource source;
    for (auto& [name, t] : all) source.tensors.push_back({name, t.shape(), t.dtype()});
    source.read = [&](size_t i) { return all[i].second; };
    write_tensors(folder / "made.tenon", FileFormat::tenon, source);
    return Program::load(folder / "made.tenon");
  }
  void refused(const char* why) {
    const std::string text = error_of<CheckpointError>([&] { load(); });
    BOOST_TEST(has(text, why), "\"" << why << "\" expected in: " << text);
  }
};

json of(const char* dtype, int64_t n) { return {dtype, {n}, {1}}; }
json made(const json& tensor) { return {-1, tensor}; }

constexpr int64_t kHalf = 4602678819172646912;  // the bits of 0.5

}  // namespace

BOOST_AUTO_TEST_CASE(inputs_of_another_size_or_dtype_are_refused) {
  const auto two = [](const char* op, const json& a, const json& b) {
    return json{
        {"op", op}, {"inputs", {a, b}}, {"outputs", {made(a)}}, {"at", {{0, 0}, {1, 0}, {2, 0}}}};
  };
  const Tensor x = ones({8}), y = ones({2});
  for (const char* op :
       {"tanh_backward", "sigmoid_backward", "relu_backward", "gelu_backward", "silu_backward",
        "mish_backward", "gelu_tanh_backward", "logsigmoid_backward"}) {
    Made()
        .tensor(x)
        .tensor(y)
        .inside(32)
        .node(two(op, of("f32", 8), of("f32", 2)))
        .result(2, of("f32", 8))
        .refused("argument 1 has shape (2,), which does not fit into the result's (8,)");
    Made()
        .tensor(x)
        .tensor(ones({8}, f64))
        .inside(32)
        .node(two(op, of("f32", 8), of("f64", 8)))
        .result(2, of("f32", 8))
        .refused("has dtype f64");
  }
  json drop = two("dropout_backward", of("f32", 8), of("bool", 2));
  drop["scalars"] = {kHalf};
  Made()
      .tensor(x)
      .tensor(ones({2}, boolean))
      .inside(32)
      .node(drop)
      .result(2, of("f32", 8))
      .refused("the mask has shape (2,), and the gradient (8,)");
  drop["inputs"][1] = of("u8", 8);
  Made()
      .tensor(x)
      .tensor(ones({8}, u8))
      .inside(32)
      .node(drop)
      .result(2, of("f32", 8))
      .refused("must be bool");
  const json where = {{"op", "where"},
                      {"inputs", {of("bool", 8), of("f64", 8), of("u8", 8)}},
                      {"outputs", {made(of("f64", 8))}},
                      {"at", {{0, 0}, {1, 0}, {2, 0}, {3, 0}}}};
  Made()
      .tensor(ones({8}, boolean))
      .tensor(ones({8}, f64))
      .tensor(ones({8}, u8))
      .inside(64)
      .node(where)
      .result(3, of("f64", 8))
      .refused("b has dtype u8");
}

BOOST_AUTO_TEST_CASE(outputs_that_nobody_wants_are_not_written) {
  Made()
      .tensor(ones({8}))
      .inside(32)
      .node({{"op", "dropout"},
             {"inputs", {of("f32", 8)}},
             {"outputs", {made(of("f32", 8)), nullptr}},
             {"at", {{0, 0}, {1, 0}, nullptr}},
             {"scalars", {0, 0, kHalf}},
             {"draw", 0}})
      .result(1, of("f32", 8))
      .refused("output 1 is missing");
  auto pivots = Made()
                    .tensor(eye(4))
                    .inside(16)
                    .node({{"op", "lu_factor"},
                           {"inputs", {{"f32", {4, 4}, {4, 1}}}},
                           {"outputs", {nullptr, made(of("i32", 4))}},
                           {"at", {{0, 0}, nullptr, {1, 0}}},
                           {"wanted", 2}})
                    .result(1, of("i32", 4))
                    .load();
  BOOST_TEST(pivots.run({})[0].to_vector<int32_t>()[3] == 4);
}

BOOST_AUTO_TEST_CASE(what_is_changed_lies_over_no_other_input) {
  const json x = {"f64", {2, 2}, {2, 1}}, none = {"f64", json::array(), json::array()};
  json node = {{"op", "cross_entropy_backward"},
               {"attributes",
                {{"reduction", "text", "sum"},
                 {"ignore_index", "int", -100},
                 {"label_smoothing", "float", 0}}},
               {"inputs", {none, x, of("i64", 2), nullptr, x, none}},
               {"outputs", {{1, x}}},
               {"at", {{0, 0}, {1, 0}, {1, 0}, nullptr, {2, 0}, {3, 0}, {1, 0}}},
               {"into", {1, x}}};
  const auto file = [&] {
    return Made()
        .tensor(ones({}, f64))
        .tensor(zeros({4}, f64))
        .tensor(zeros({2, 2}, f64))
        .tensor(ones({}, f64))
        .tensor(zeros({2}, i64))
        .node(node)
        .result(1, x);
  };
  file().refused("its result lies over another of its tensors");
  node["at"][2] = {4, 0};
  file().load().run({})[0].wait();
}

// What lies in the gaps of another tensor lies over none of its bytes.
BOOST_AUTO_TEST_CASE(columns_of_a_matrix_are_apart) {
  const auto file = [](const json& shape, const json& strides, int other) {
    const json t = json::array({"f32", shape, strides});
    return Made()
        .tensor(arange(0, 8).to(f32))
        .node({{"op", "copy"},
               {"attributes", json::array({json::array({"dtype", "int", static_cast<int>(f32)})})},
               {"inputs", json::array({t})},
               {"outputs", json::array({made(t)})},
               {"at", {{0, 4 * other}, {0, 0}}},
               {"into", made(t)}})
        .result(0, of("f32", 8));
  };
  const auto values = [&](Made made) { return made.load().run({})[0].to_vector<float>(); };
  BOOST_TEST(values(file({4}, {2}, 1)) == (std::vector<float>{1, 1, 3, 3, 5, 5, 7, 7}));
  BOOST_TEST(values(file({2, 2}, {4, 1}, 2)) == (std::vector<float>{2, 3, 2, 3, 6, 7, 6, 7}));
  file({2, 2}, {4, 1}, 1).refused("its result lies over");
  file({3}, {2}, 2).refused("its result lies over");
  file({4}, {1}, 3).refused("its result lies over");
}

// It would be what others of the process left there.
BOOST_AUTO_TEST_CASE(memory_that_is_not_written_is_zero) {
  constexpr int64_t n = 1 << 16;
  const auto neg = [](int64_t size, int from, int to) {
    return json{{"op", "neg"},
                {"inputs", {of("f32", size)}},
                {"outputs", {made(of("f32", size))}},
                {"at", {{from, 0}, {to, 0}}}};
  };
  const auto sums = [](Made& file) {
    full({n}, 4242.0).wait();  // and is let go
    Program program = file.load();
    for (int i = 0; i < 2; ++i) {
      full({n}, 4242.0).wait();
      const auto y = program.run({})[0].to_vector<float>();
      BOOST_TEST(y[0] * y[0] == 1.0f);
      BOOST_TEST(std::count(y.begin(), y.end(), 0.0f) == n - 1);
    }
  };
  Made read = Made().tensor(ones({1})).inside(4 * n).inside(4 * n);
  sums(read.node(neg(1, 0, 1)).node(neg(n, 1, 2)).result(2, of("f32", n)));
  Made kept = Made().tensor(ones({1})).inside(4 * n);
  sums(kept.node(neg(1, 0, 1)).result(1, of("f32", n)));
}

BOOST_AUTO_TEST_CASE(programs_of_the_process_are_in_no_file) {
  Made()
      .tensor(ones({2}))
      .inside(8)
      .node({{"op", "fused"},
             {"attributes", {{"program", "text", "x"}}},
             {"inputs", {of("f32", 2)}},
             {"outputs", {made(of("f32", 2))}},
             {"at", {{0, 0}, {1, 0}}}})
      .result(1, of("f32", 2))
      .refused("it is never recorded");
}

BOOST_AUTO_TEST_SUITE_END()
