// Tensors as values: making, reading, printing, and what is said when something does not fit.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(tensor_test)

using namespace tenon;
using test::error_of;
using test::has;

BOOST_AUTO_TEST_CASE(the_cpu_computes_in_half_types) {
  for (DType t : {f16, bf16}) {
    const Tensor y = matmul(full({2, 2}, 3, {.dtype = t}), ones({2, 2}, {.dtype = t}));
    BOOST_TEST((y.dtype() == t));
    BOOST_TEST((y.to(f32).to_vector<float>() == std::vector<float>(4, 6)));
  }
}

BOOST_AUTO_TEST_CASE(facts) {
  Tensor t = arange(0, 24).reshape({2, 3, 4});
  BOOST_TEST((t.shape() == Shape{2, 3, 4}));
  BOOST_TEST((t.strides() == Strides{12, 4, 1}));
  BOOST_TEST(t.numel() == 24);
  BOOST_TEST(t.size(-1) == 4);
  BOOST_TEST(t.dim() == 3);
  BOOST_TEST(t.device().str() == "cpu:0");
  BOOST_TEST(t.is_contiguous());
  BOOST_TEST(!t.transpose(0, 2).is_contiguous());
  BOOST_TEST(scalar(3).shape().str() == "()");
  BOOST_TEST((Shape{4}).str() == "(4,)");
}

// What would compile and mean something else than it says does not compile.
namespace {
template <class A, class B>
concept CanAssign = requires(A&& a, B&& b) { std::forward<A>(a) = std::forward<B>(b); };
template <class T>
concept CanBeACondition = requires(T&& t) { std::forward<T>(t) ? 1 : 0; };

static_assert(!std::is_constructible_v<bool, Tensor> &&
              !std::is_constructible_v<bool, const Tensor&>);
static_assert(!CanBeACondition<Tensor> && !CanBeACondition<const Tensor&> &&
              !CanBeACondition<decltype(!scalar(1))> &&
              !CanBeACondition<decltype(scalar(1) == scalar(2))>);
static_assert(!CanBeACondition<decltype(scalar(1) < scalar(2))> &&
              !CanBeACondition<decltype(scalar(1) < 2.0)>);

static_assert(CanAssign<Tensor&, Tensor> && CanAssign<Tensor&, const Tensor&> &&
              std::is_nothrow_move_assignable_v<Tensor>);
static_assert(!CanAssign<Tensor, Tensor> && !CanAssign<Tensor, const Tensor&>);
static_assert(!CanAssign<Tensor, double> && !CanAssign<Tensor, int> && !CanAssign<Tensor&, double>);
static_assert(std::is_copy_assignable_v<Tensor> && std::is_move_assignable_v<Tensor> &&
              std::is_nothrow_swappable_v<Tensor>);
static_assert(!CanAssign<decltype(scalar(1)[0]), Tensor> &&
              !CanAssign<decltype(scalar(1).select(0, 0)), const Tensor&>);
}  // namespace

BOOST_AUTO_TEST_CASE(a_part_is_written_by_copy_and_never_without_its_gradient) {
  Tensor x = zeros({2, 2});
  const uint64_t before = x.version();
  x[0].copy_(tensor({1, 2}));
  BOOST_TEST(x.to_vector<float>() == (std::vector<float>{1, 2, 0, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(x.version() == before + 1);

  // What cannot be recorded is refused, wherever the gradient would have been lost.
  Tensor w = ones({2}, {.requires_grad = true});
  Tensor leaf = ones({2, 2}, {.requires_grad = true});
  Tensor computed = leaf * 2;
  BOOST_TEST(has(error_of([&] { x[0].copy_(w); }), "copying into a tensor is not recorded"));
  BOOST_TEST(has(error_of([&] { leaf[0].copy_(tensor({1, 2})); }), "requires a gradient"));
  BOOST_TEST(has(error_of([&] { computed[0].copy_(tensor({1, 2})); }), "requires a gradient"));
  BOOST_TEST(has(error_of([&] { computed[0].fill_(3); }), "requires a gradient"));
  no_grad([&] { leaf[0].copy_(w); });
  BOOST_TEST(leaf.to_vector<float>() == (std::vector<float>{1, 1, 1, 1}),
             boost::test_tools::per_element());

  // A value that a recorded operator saved may be overwritten through a view; the backward pass
  // notices.
  Tensor saved = ones({2});
  Tensor y = (w * saved).sum();
  saved[0].fill_(5);
  BOOST_TEST(has(error_of([&] { y.backward(); }), "has been changed in place"));
}

// Naming a tensor once more still compiles: only an assignment to a temporary is refused.
BOOST_AUTO_TEST_CASE(handles_are_assigned_like_any_value) {
  Tensor a = scalar(1), b = scalar(2);
  std::swap(a, b);
  auto& name = a;
  name = std::move(b);
  BOOST_TEST(a.item() == 1.0);
  std::tie(a, b) = std::pair(scalar(3), scalar(4));
  (a) = a = b;
  BOOST_TEST(a.is_same(b));
  std::vector<Tensor> list = {scalar(5), scalar(6), scalar(7)};
  list[0] = list.back() = a;
  list.front() = [&]() -> Tensor& { return list[1]; }();
  list.erase(list.begin());
  list.insert(list.begin(), scalar(8));
  list.at(1) = {};
  BOOST_TEST(!list[1].defined());
  std::optional<Tensor> maybe;
  maybe = list[0];
  *maybe = scalar(9);
  BOOST_TEST(list[0].item() == 8.0);
}

BOOST_AUTO_TEST_CASE(what_a_tensor_is_prints) {
  const Tensor x = zeros({2, 3}, {.dtype = i64, .device = "cpu:1"});
  std::ostringstream out;
  out << x.dtype() << " " << x.shape() << " " << x.strides() << " " << x.device() << " " << boolean;
  BOOST_TEST(out.str() == "i64 (2, 3) (3, 1) cpu:1 bool");
}

BOOST_AUTO_TEST_CASE(numbers_in_methods_stay_what_they_are) {
  const Tensor whole = full({2}, 3, {.dtype = i64});
  BOOST_TEST(whole.pow(2).dtype() == i64);
  BOOST_TEST(whole.pow(2).to_vector<int64_t>() == (std::vector<int64_t>{9, 9}));
  BOOST_TEST(whole.pow(39)[0].item<int64_t>() == 4052555153018976267);
  BOOST_TEST(whole.pow(2.0).dtype() == f32);
  BOOST_TEST(scalar(3).pow(2).dtype() == f32);
  const int64_t beyond_double = (int64_t{1} << 53) + 1;
  BOOST_TEST(full({1}, beyond_double, {.dtype = i64}).item<int64_t>() == beyond_double);
  BOOST_TEST(scalar(beyond_double, {.dtype = i64}).item<int64_t>() == beyond_double);
  BOOST_TEST(zeros({1}, {.dtype = i64}).fill_(-beyond_double).item<int64_t>() == -beyond_double);
  BOOST_TEST(has(error_of([] { full({1}, ~uint64_t{0}, {.dtype = i64}); }), "has no value in i64"));
}

BOOST_AUTO_TEST_CASE(copies_of_a_handle_share_and_views_share) {
  Tensor t = zeros({2, 2}), same = t, row = t[1];
  const auto before = t.version();
  row.fill_(5);
  BOOST_TEST(same.to_vector<float>() == (std::vector<float>{0, 0, 5, 5}));
  BOOST_TEST(t.version() == before + 1);
  BOOST_TEST(t.clone().version() == 0u);
}

BOOST_AUTO_TEST_CASE(every_dtype_goes_in_and_out) {
  const std::vector<double> values{0, 1, 2.5, 100};
  for (auto dtype : {f32, f64, f16, bf16, i64, i32, u8, boolean}) {
    auto back = tensor(values, {4}, {.dtype = dtype}).to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double expected = dtype == boolean           ? values[i] != 0
                              : is_floating_point(dtype) ? values[i]
                                                         : std::trunc(values[i]);
      BOOST_TEST(back[i] == expected, name_of(dtype) << " " << i);
    }
    BOOST_TEST((parse_dtype(name_of(dtype)) == dtype));
  }
  BOOST_TEST(tensor({2.75f}).item<int>() == 2);
  BOOST_TEST(tensor(std::vector<int64_t>{(int64_t{1} << 60) + 1}).item<int64_t>() ==
             (int64_t{1} << 60) + 1);
}

BOOST_AUTO_TEST_CASE(other_options_leave_the_dtype_alone) {
  const std::vector<int64_t> large{1, int64_t{1} << 40};
  const Tensor whole = tensor(large, {2}, {.device = "cpu:1"});
  BOOST_TEST((whole.dtype() == i64));
  BOOST_TEST((whole.to_vector<int64_t>() == large));
  const Tensor leaf = tensor(std::vector<double>{0.1}, {1}, {.requires_grad = true});
  BOOST_TEST((leaf.dtype() == f64));
  BOOST_TEST(leaf.item() == 0.1);
  BOOST_TEST((randint(0, 5, {2}, {.device = "cpu:1"}).dtype() == i64));
  BOOST_TEST((from_host(large.data(), i64, {2}, {.device = "cpu:1"}).dtype() == i64));
  BOOST_TEST((arange(0, 3, 1, {.device = "cpu:1"}).dtype() == f32));
  BOOST_TEST((tensor(large, {2}, {.dtype = f64}).dtype() == f64));
  BOOST_TEST((tensor(std::vector<long long>{1, 2}).dtype() == i64));
  BOOST_TEST((tensor(std::vector<long>{1, 2}).dtype() == i64));
}

BOOST_AUTO_TEST_CASE(items_are_converted_or_refused) {
  BOOST_TEST(scalar(0.5).item<bool>());
  BOOST_TEST(scalar(std::nan("")).item<bool>());
  BOOST_TEST(!scalar(-0.0).item<bool>());
  BOOST_TEST((tensor({0.5f, 0, -2}).to_vector<bool>() == std::vector<bool>{true, false, true}));
  BOOST_TEST(
      (tensor(std::vector<int64_t>{256, 0}).to_vector<bool>() == std::vector<bool>{true, false}));

  const Tensor large = scalar(3e9, {.dtype = f64}), not_a_number = scalar(std::nan(""));
  const std::string text = error_of([&] { large.item<int>(); });
  BOOST_TEST(has(text, "item: the f64 value 3e+09 cannot be converted"), text);
  BOOST_TEST(has(text, "from -2147483648 to 2147483647"), text);
  BOOST_CHECK_THROW(not_a_number.item<int64_t>(), ValueError);
  BOOST_CHECK_THROW(scalar(0x1p63).item<int64_t>(), ValueError);
  BOOST_CHECK_THROW(scalar(-1).item<uint64_t>(), ValueError);
  BOOST_CHECK_THROW(scalar(256, {.dtype = i64}).item<uint8_t>(), ValueError);
  BOOST_CHECK_THROW(scalar(-1, {.dtype = i64}).item<unsigned>(), ValueError);
  BOOST_CHECK_THROW(scalar(1e300, {.dtype = f64}).item<float>(), ValueError);
  BOOST_TEST(large.item<int64_t>() == 3'000'000'000);
  BOOST_TEST(scalar(-0x1p63).item<int64_t>() == std::numeric_limits<int64_t>::min());
  BOOST_TEST(scalar(0x1p63).item<uint64_t>() == uint64_t{1} << 63);
  BOOST_TEST(scalar(255.9).item<uint8_t>() == 255);
  BOOST_TEST(scalar(-0.9).item<uint8_t>() == 0);
  BOOST_TEST(scalar(-2.75).item<int>() == -2);
  BOOST_TEST(std::isinf(scalar(INFINITY).item<float>()));
  BOOST_TEST(std::isnan(not_a_number.item<float>()));
}

BOOST_AUTO_TEST_CASE(errors_name_the_function_that_was_called) {
  auto begins = [](const std::string& text, const std::string& with) {
    BOOST_TEST(text.substr(0, with.size()) == with);
  };
  begins(error_of([] { ones({-1, 2}); }), "ones: ");
  begins(error_of([] { zeros({-1, 2}); }), "zeros: ");
  begins(error_of([] { rand({2}, {.dtype = i64}); }),
         "rand: the dtype must be floating, found i64");
  begins(error_of([] { randn({2}, {.dtype = i64}); }),
         "randn: the dtype must be floating, found i64");
  begins(error_of([] { Tensor().item(); }), "item: ");
  begins(error_of([] { Tensor().item<bool>(); }), "item: ");
  begins(error_of([] { Tensor().dim(); }), "dim: ");
  begins(error_of([] { Tensor().size(0); }), "size: ");
  begins(error_of([] {
           ones({2, 3})[2];
         }),
         "operator[]: index 2 is out of range for dim 0 of shape (2, 3); it must lie in [-2, 1]");
  begins(error_of([] { scalar(300, {.dtype = u8}); }), "scalar: the number 300 has no value in u8");
}

// A backend that is not there has no devices; to use one tells why.
BOOST_AUTO_TEST_CASE(there_are_no_devices_of_an_absent_backend) {
  BOOST_TEST(device_count("no-such-backend") == 0u);
  BOOST_CHECK_THROW(ones({1}, {.device = "no-such-backend"}), PluginError);
}

BOOST_AUTO_TEST_CASE(printing_is_pytorchs) {
  BOOST_TEST(tensor({1, 2.5}).str() == "tensor([1.0000, 2.5000])");
  BOOST_TEST(tensor({1, 2, 3, 4}, {2, 2}).str() == "tensor([[1., 2.],\n        [3., 4.]])");
  BOOST_TEST(scalar(7).str() == "tensor(7.)");
  BOOST_TEST(empty({0}).str() == "tensor([])");
  BOOST_TEST(empty({0, 3}).str() == "tensor([], size=(0, 3))");
  BOOST_TEST(tensor({-1, 10, 100}).str() == "tensor([ -1.,  10., 100.])");
  BOOST_TEST(tensor({1e-5f, 1}).str() == "tensor([1.0000e-05, 1.0000e+00])");
  BOOST_TEST(tensor({NAN, INFINITY, 1}).str() == "tensor([nan, inf, 1.])");
  BOOST_TEST(tensor(std::vector<int64_t>{1, 20}).str() == "tensor([ 1, 20])");
  BOOST_TEST(tensor({1, 0}).to(boolean).str() == "tensor([ True, False])");
  BOOST_TEST(tensor({1}).to(f64).str() == "tensor([1.], dtype=f64)");
  BOOST_TEST(tensor({1}).to("cpu:1").str() == "tensor([1.], device='cpu:1')");
  BOOST_TEST(arange(0, 2000).str() == "tensor([   0.,    1.,    2., ..., 1997., 1998., 1999.])");
  BOOST_TEST(ones({2, 1, 2}).str() == "tensor([[[1., 1.]],\n\n        [[1., 1.]]])");
  Tensor x = tensor({1});
  x.requires_grad_();
  BOOST_TEST(x.str() == "tensor([1.], requires_grad=True)");
  BOOST_TEST((x * 2.0).str() == "tensor([2.], grad_fn=<mul>)");
  BOOST_TEST(Tensor().str() == "tensor(undefined)");
}

BOOST_AUTO_TEST_CASE(shapes_that_do_not_fit_are_both_named) {
  auto text = error_of([] { ones({2, 3}) + ones({4, 3}); });
  BOOST_TEST((has(text, "add") && has(text, "(2, 3)") && has(text, "(4, 3)")), text);
  text = error_of([] { matmul(ones({2, 3}), ones({4, 5})); });
  BOOST_TEST((has(text, "matmul") && has(text, "(2, 3)") && has(text, "(4, 5)")), text);
  text = error_of([] { tensor({1, 2, 3}, {2, 2}); });
  BOOST_TEST((has(text, "3 values") && has(text, "(2, 2)")), text);
  text = error_of([] { ones({2, 3}).reshape({4, 2}); });
  BOOST_TEST((has(text, "(2, 3)") && has(text, "(4, 2)")), text);
  BOOST_CHECK_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
}

BOOST_AUTO_TEST_CASE(reading_what_is_not_there) {
  BOOST_TEST(has(error_of([] { Tensor().item(); }), "undefined"));
  BOOST_TEST(has(error_of([] { Tensor() + ones({1}); }), "undefined"));
  BOOST_TEST(has(error_of([] { ones({2}).item(); }), "2 elements"));
  BOOST_CHECK_THROW(ones({2}).data<int64_t>(), DTypeError);
  BOOST_CHECK_THROW(ones({2, 2}).t().data<float>(), ValueError);
  BOOST_CHECK_THROW(ones({2}).size(1), IndexError);
  BOOST_CHECK_THROW(ones({2})[2], IndexError);
  BOOST_CHECK_THROW(parse_dtype("float"), DTypeError);
}

BOOST_AUTO_TEST_CASE(promotion_of_types) {
  BOOST_TEST((promote(i64, f32) == f32));
  BOOST_TEST((promote(f32, f64) == f64));
  BOOST_TEST((promote(f16, bf16) == f32));
  BOOST_TEST((promote(boolean, u8) == u8));
  BOOST_TEST(((ones({1}, {.dtype = i64}) + ones({1})).dtype() == f32));
}

BOOST_AUTO_TEST_CASE(overlapping_copies_in_place) {
  Tensor t = arange(0, 9).reshape({3, 3});
  t.copy_(t.t());
  BOOST_TEST(t.to_vector<float>() == (std::vector<float>{0, 3, 6, 1, 4, 7, 2, 5, 8}));
  Tensor line = arange(0, 5);
  line.narrow(0, 1, 4).copy_(line.narrow(0, 0, 4));
  BOOST_TEST(line.to_vector<float>() == (std::vector<float>{0, 0, 1, 2, 3}));
}

// What the plugin tells besides its sentence is added only where the sentence lacks it.
BOOST_AUTO_TEST_CASE(a_late_error_says_each_fact_once) {
  const Tensor index = tensor(std::vector<int64_t>{0, 7}, {2}, {.dtype = i64});
  const std::string text = error_of([&] { index_select(ones({3}), 0, index).wait(); });
  BOOST_TEST(has(text, "index 7 at position 1 is outside [0, 3)"), text);
  BOOST_TEST(text.find("7") == text.rfind("7"), text);
  BOOST_TEST(!has(text, "size"), text);
}

BOOST_AUTO_TEST_SUITE_END()
