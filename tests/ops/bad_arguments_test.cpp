// Wrong inputs to every function of the table: undefined tensors, others of another device, dtype
// or shape. Each call either works, so that its results can be read, or throws a tenon::Error that
// names the function and the argument.
#include "ops/bad_arguments.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>

#include <boost/test/unit_test.hpp>

#include "support/expect.h"

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

// Otherwise the cases here would take any text for the name of an argument.
BOOST_AUTO_TEST_CASE(the_names_of_arguments_are_read_in_the_headers) {
  const auto headers = std::filesystem::path(test::reference_dir()) / "../../core/ops";
  if (!std::filesystem::exists(headers)) return;  // carried to another machine
  const auto& functions = test::arguments::of_functions();
  BOOST_TEST(functions.size() > 400u);
  using Names = test::arguments::Names;
  BOOST_CHECK((functions.at("permute") == Names{"x", "dims"}));
  BOOST_CHECK((functions.at("interpolate") == Names{"x", "options", "size", "scale_factor", "mode",
                                                    "align_corners", "recompute_scale_factor",
                                                    "antialias"}));
}

// A function that leaves it to its operators to check what they get is named before them. The class
// of the error stays, and a module still says which of its tensors is elsewhere.
BOOST_AUTO_TEST_CASE(the_function_is_named_before_the_operator_that_refuses) {
  const Tensor x = ones({2, 3}), index = zeros({2}, {.dtype = i64});
  test::require_error<ShapeError>([&] { kl_div(x, ones({4})); }, "kl_div: mul: shapes (4,)");
  test::require_error<DTypeError>([&] { mse_loss(index, index); },
                                  "mse_loss: mean: x has dtype i64");
  test::require_error<IndexError>([&] { normalize(x, 2, 7); }, "normalize: norm: sum: dim 7");
  test::require_error<DeviceError>([&] { gaussian_nll_loss(x, x.to(Device("cpu", 1)), x); },
                                   "gaussian_nll_loss: sub: b, f32 of shape (2, 3), is on cpu:1");
  nn::GRU layer(3, 2);
  test::require_error<DeviceError>(
      [&] {
        layer(ones({4, 2, 3}, {.device = Device("cpu", 1)}));
      },
      "gru: linear: the input", "is on cpu:1",
      "but the parameters of GRU are on " + default_device().str());
}

// What was queued before and has failed says itself where that was.
BOOST_AUTO_TEST_CASE(a_failure_of_other_work_keeps_its_text) {
  // A device with streams may tell it to whoever comes first.
  if (default_device().type() != "cpu") return;
  const Tensor x = ones({2, 3}), far = full({2}, 9, {.dtype = i64});
  const Tensor failed = index_select(x, 0, far);
  const std::string text = test::error_of<IndexError>([&] { failed.wait(); });
  BOOST_TEST(text.starts_with("index_select: index 9"), text);
  const std::string again = test::error_of<IndexError>([&] { masked_select(x, gt(failed, 0)); });
  BOOST_TEST(again.starts_with("index_select: index 9"), again);
}

BOOST_AUTO_TEST_SUITE_END()
