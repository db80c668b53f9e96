// Wrong inputs to every function of the table: undefined tensors, others of another device, dtype
// or shape. Each call either works, so that its results can be read, or throws a tenon::Error that
// says whose argument it was.
#include "ops/bad_arguments.h"

#include <algorithm>
#include <functional>
#include <string>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(bad_arguments)

using namespace tenon;
using namespace tenon::test::bad_arguments;

namespace {

// What is put in the place of an input.
struct Wrong {
  const char* what;
  std::function<Tensor(const Tensor&)> made;
};

Tensor ones_of(const Tensor& x, const Shape& shape) { return ones(shape, {.dtype = x.dtype()}); }
Shape changed(const Tensor& x, int64_t last) {
  Shape shape = x.shape();
  if (!shape.empty()) shape[shape.size() - 1] = last;
  return shape;
}

const std::vector<Wrong>& wrong_inputs() {
  static const std::vector<Wrong> all = {
      {"undefined", [](const Tensor&) { return Tensor(); }},
      {"on another device", [](const Tensor& x) { return x.to(Device("cpu", 1)); }},
      {"bool", [](const Tensor& x) { return x.to(boolean); }},
      {"i64", [](const Tensor& x) { return x.to(i64); }},
      {"u8", [](const Tensor& x) { return x.to(u8); }},
      {"f64", [](const Tensor& x) { return x.to(f64); }},
      {"f16", [](const Tensor& x) { return x.to(f16); }},
      {"without dimensions", [](const Tensor& x) { return ones_of(x, {}); }},
      {"a vector", [](const Tensor& x) { return ones_of(x, {3}); }},
      {"with a dimension more", [](const Tensor& x) { return ones_of(x, x.shape()).unsqueeze(0); }},
      {"with a dimension less",
       [](const Tensor& x) {
         Shape shape = x.shape();
         if (!shape.empty()) shape.erase(0);
         return ones_of(x, shape);
       }},
      {"longer",
       [](const Tensor& x) { return ones_of(x, changed(x, x.dim() ? x.size(-1) + 1 : 1)); }},
      {"empty", [](const Tensor& x) { return ones_of(x, changed(x, 0)); }},
      {"turned",
       [](const Tensor& x) {
         Shape shape = x.shape();
         std::vector<int64_t> sizes(shape.begin(), shape.end());
         std::reverse(sizes.begin(), sizes.end());
         return ones_of(x, sizes);
       }},
  };
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_function_refuses_or_computes) {
  size_t count = 0;
  for_each_call([&](const Line& line, const Good& good, bool asked_before) {
    for (size_t i = 0; i < good.in.size(); ++i)
      for (auto& wrong : wrong_inputs()) {
        if (!good.in[i].defined() || good.in[i].numel() > 10000) continue;
        List in = good.fresh();
        in[i] = wrong.made(in[i]);
        ++count;
        try_call(line, good.args, in, asked_before,
                 std::string(line.name) + " " + good.variant->args + " whose input " +
                     std::to_string(i) + " is " + wrong.what);
      }
  });
  BOOST_TEST(count > 10000u);
}

BOOST_AUTO_TEST_SUITE_END()
