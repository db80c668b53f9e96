// Calls in a file of a program that no public function makes: with another count of numbers, or
// attributes out of their ranges or of other kinds. Each is refused, or stays inside its memory.
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <tenon/core/dispatch/op.h>
#include <tenon/tenon.h>

#include "crafted.h"

BOOST_AUTO_TEST_SUITE(program_calls_test)

using namespace tenon;
using namespace tenon::test::crafted;

// Kernels read as many numbers as their operator takes, however many there are in the file.
BOOST_AUTO_TEST_CASE(each_operator_takes_its_count_of_numbers) {
  Crafted crafted;
  size_t with_numbers = 0;
  for (const Op* op = all_ops(); op; op = op->next) {
    if (op->execute || op->count_scalars) continue;  // the latter read a text of the call
    with_numbers += op->scalars > 0;
    for (const int by : {-1, 1, 20}) {
      if (op->scalars + by < 0) continue;
      const std::string text = crafted.refusal([&](Crafted& c) {
        json& node = c.node("conv2d");
        node["op"] = op->name;
        node["scalars"] = std::vector<int>(static_cast<size_t>(op->scalars + by), 1);
      });
      const auto why = "(" + std::string(op->name) + "): " + op->name + ": it takes " +
                       std::to_string(op->scalars) + " scalars here, found " +
                       std::to_string(op->scalars + by);
      BOOST_TEST(has(text, why), "\"" << why << "\" expected in: " << text);
    }
  }
  BOOST_TEST(with_numbers > 20u);
}

namespace {

// Writes a program of operators with many attributes.
void save_attributes(const std::filesystem::path& path) {
  const Tensor weight = randn({4, 2, 3, 3}), channels = ones({4}), last = ones({4});
  auto f = compile([&](const Tensor& x, const Tensor& at) {
    const Tensor h =
        group_norm(conv2d(x, weight, {}, {.padding = 1, .groups = 2}), 2, channels, channels);
    const Tensor pooled = avg_pool2d(max_pool2d(h, 2, 1), 2);
    const Tensor flat = softmax(layer_norm(x, {4}, last, last), 1);
    const Tensor ranks = argmax(flat, 2).to(f64).to(f16).to(i32);
    return std::vector{pooled,
                       ranks,
                       rms_norm(x, {4}, last),
                       gather(flat, 3, at),
                       cumsum(flat, 1).sum({0, 2}),
                       cat({flat, h}, 1),
                       sort(flat, 1).values,
                       topk(flat, 2, 3).indices,
                       var(flat, {1, 3}, 1),
                       index_select(flat, 0, zeros({3}, i64)),
                       tril(flat, 1),
                       flip(flat, {0, 1}),
                       amax(flat, {0}, true)};
  });
  for (int i = 0; i < 3; ++i) f(randn({2, 4, 4, 4}), zeros({2, 4, 4, 1}, i64));
  f.save(path, {.inputs = {"x", "at"}});
}

}  // namespace

// Rules and plugins rely on attributes that public functions have checked.
BOOST_AUTO_TEST_CASE(no_value_of_an_attribute_does_harm) {
  Crafted crafted(save_attributes);
  const NamedTensors inputs{{"x", ones({2, 4, 4, 4})}, {"at", zeros({2, 4, 4, 1}, i64)}};
  BOOST_REQUIRE(!is_refused(crafted.write(crafted.graph)));
  const json whole = crafted.graph;
  size_t refused = 0, dtypes = 0;
  const auto attempt = [&](const json::json_pointer& at, int64_t value, const json& name) {
    json changed = whole;
    changed[at] = value;
    std::string text;
    try {
      Program::load(crafted.write(changed)).run(inputs)[0].wait();
    } catch (const Error& error) {
      text = error.what();
      ++refused;
    }
    if (name != "dtype") return;
    ++dtypes;
    BOOST_TEST(
        has(text, "the attribute dtype has to be from 0 to 7, found " + std::to_string(value)));
  };
  for (size_t n = 0; n < whole["nodes"].size(); ++n)
    for (size_t a = 0; a < whole["nodes"][n]["attributes"].size(); ++a)
      for (const int64_t value :
           {int64_t{-1}, int64_t{8}, int64_t{256}, int64_t{65'535},
            std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
        const json& attribute = whole["nodes"][n]["attributes"][a];
        const auto at = json::json_pointer() / "nodes" / n / "attributes" / a / 2;
        if (attribute[1] == "int") attempt(at, value, attribute[0]);
        for (size_t i = 0; attribute[1] == "list" && i < attribute[2].size(); ++i)
          attempt(at / i, value, attribute[0]);
      }
  BOOST_TEST(dtypes >= 12u);
  BOOST_TEST(refused > 100u);
}

BOOST_AUTO_TEST_CASE(an_attribute_of_another_kind_is_refused) {
  Crafted crafted(save_attributes);
  const NamedTensors inputs{{"x", ones({2, 4, 4, 4})}, {"at", zeros({2, 4, 4, 1}, i64)}};
  const json others = json::parse(
      R"([["bool", false], ["int", 0], ["float", 0.5], ["text", "a"], ["hint", "a"], ["list", []]])");
  const json whole = crafted.graph;
  for (size_t n = 0; n < whole["nodes"].size(); ++n)
    for (size_t a = 0; a < whole["nodes"][n]["attributes"].size(); ++a)
      for (const json& other : others) {
        json changed = whole;
        json& attribute = changed["nodes"][n]["attributes"][a];
        if (attribute[1] == other[0]) continue;
        attribute[1] = other[0], attribute[2] = other[1];
        BOOST_CHECK_THROW(Program::load(crafted.write(changed)).run(inputs)[0].wait(), Error);
      }
}

BOOST_AUTO_TEST_SUITE_END()
