// Sizes, bounds and numbers at the ends of their types: every public function either works or
// throws an error that says what was wrong. Nothing wraps, and nothing of such a size is allocated.
#include <limits>

#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/shape.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(extreme_sizes)

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max(),
                  kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kGiga = int64_t{1} << 30;
constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  const char* what;
  std::function<void()> call;
  const char* part;  // of the error's text
};

// What the device's system gave out does not grow by more than a few blocks.
struct LittleMemory {
  uint64_t before = memory_stats(default_device()).reserved;
  ~LittleMemory() { BOOST_TEST(memory_stats(default_device()).reserved <= before + (8 << 20)); }
};

template <class E = Error>
void require_errors(const std::vector<Case>& cases) {
  LittleMemory little;
  for (auto& c : cases) BOOST_TEST_CONTEXT(c.what) {
      require_error<E>(c.call, c.part);
    }
}

// One element read at many places.
Tensor expanded(const Shape& shape, DType dtype = f32) {
  return full({}, 1, {.dtype = dtype}).expand(shape);
}
const Shape long_row = {int64_t{1} << 59};  // allowed, as a view; no memory holds a copy

}  // namespace

// Tables with one case on each line.
// clang-format off
BOOST_AUTO_TEST_CASE(results_whose_size_does_not_fit) {
  Tensor s = scalar(2), e = expanded(long_row);
  BOOST_CHECK_EQUAL(e.numel(), int64_t{1} << 59);
  require_errors<ShapeError>({
      {"expand beyond 2^60", [&] { s.expand({(1LL << 62) + 16}) + 1.0; }, "expand: from (): shape (4611686018427387920,)"},
      {"expand, product", [&] { s.expand({2 * kGiga, 2 * kGiga}); }, "more elements"},
      {"expand, empty", [&] { zeros({1, 0}).expand({2 * kGiga, 2 * kGiga, 2 * kGiga, 0}); }, "more elements"},
      {"add", [&] { s.expand({2 * kGiga, 1}) + s.expand({1, 2 * kGiga}); }, "add: (2147483648, 1) with (1, 2147483648)"},
      {"where", [&] { where(ne(expanded({2, 1}), 0), expanded({kGiga, 1, 1}), expanded({1, 1, kGiga})); }, "where"},
      {"matmul", [&] { matmul(expanded({2 * kGiga, 1}), expanded({1, 2 * kGiga})); }, "matmul"},
      {"matmul, batches", [&] { matmul(expanded({kGiga, 1, 1, 1, 2}), expanded({1, kGiga, 1, 2, 1})); }, "matmul"},
      {"linear", [&] { linear(expanded({2 * kGiga, 1}), expanded({2 * kGiga, 1})); }, "linear"},
      {"stack", [&] { stack(std::vector<Tensor>(4, e)); }, "cat"},
      {"cat", [&] { cat(std::vector<Tensor>(20, e)); }, "add up to more"},
      {"reshape", [&] { zeros({0}).reshape({0, 2 * kGiga, 2 * kGiga}); }, "reshape"},
      {"embedding", [&] { embedding(expanded({4 * kGiga}, i64), expanded({1, kGiga})); }, "embedding"},
      {"index_select", [&] { index_select(expanded({1, 4 * kGiga}), 0, expanded({kGiga}, i64)); }, "index_select"},
      {"adaptive_avg_pool2d", [&] { adaptive_avg_pool2d(ones({1, 1, 2, 2}), {2 * kGiga - 1, 2 * kGiga - 1}); }, "adaptive_avg_pool2d"},
  });
}

BOOST_AUTO_TEST_CASE(results_that_no_memory_holds) {
  Tensor e = expanded(long_row), half = e.narrow(0, 0, 1LL << 58), scores = expanded({kGiga, 4 * kGiga / 8}),
         labels = expanded({kGiga}, i64);
  std::vector<Case> cases = {
      {"add", [&] { e + 1.0; }, "add: (576460752303423488,) on "},
      {"add, broadcast", [&] { expanded({kGiga / 2, 1}) + expanded({1, kGiga / 2}); }, "add"},
      {"to", [&] { e.to(f64); }, "copy"},
      {"contiguous", [&] { e.contiguous(); }, "copy"},
      {"clone", [&] { e.clone(); }, "copy"},
      {"to a device", [&] { e.to(Device("cpu:1")); }, "copy"},
      {"reshape", [&] { expanded({kGiga, kGiga / 4}).t().reshape({kGiga / 4, kGiga}) + 0; }, "a result of shape"},
      {"cat", [&] { cat({half, half}); }, "cat"},
      {"stack", [&] { stack({half, half}); }, "cat"},
      {"matmul", [&] { matmul(expanded({kGiga / 4, 1}), expanded({1, kGiga / 4})); }, "matmul"},
      {"matmul, long", [&] { matmul(expanded({1 << 19, int64_t{1} << 40}), expanded({int64_t{1} << 40, 1 << 19})); }, "matmul"},
      {"linear", [&] { linear_relu(expanded({kGiga / 4, 1}), expanded({kGiga / 4, 1})); }, "linear_relu"},
      {"sum", [&] { sum(expanded({int64_t{1} << 59, 1}), {1}); }, "sum"},
      {"argmax", [&] { argmax(expanded({int64_t{1} << 57, 1}), 1); }, "argmax"},
      {"var", [&] { var(expanded({int64_t{1} << 57, 1}), {1}); }, "var"},
      {"any", [&] { any(expanded({int64_t{1} << 59, 1}), {1}); }, ""},
      {"logsumexp", [&] { logsumexp(expanded({int64_t{1} << 57, 1}), {1}); }, "logsumexp"},
      {"norm", [&] { norm(expanded({int64_t{1} << 57, 1}), 2, {1}); }, ""},
      {"softmax", [&] { softmax(e, 0); }, "softmax"},
      {"log_softmax", [&] { log_softmax(e, 0); }, "log_softmax"},
      {"dropout", [&] { dropout(e); }, "dropout"},
      {"layer_norm", [&] { layer_norm(expanded({kGiga, kGiga / 4}), {kGiga / 4}); }, "layer_norm"},
      {"batch_norm", [&] { batch_norm(expanded({kGiga, 2, kGiga / 8}), {}, {}, {}, {}, true); }, "batch_norm"},
      {"embedding", [&] { embedding(expanded({kGiga}, i64), expanded({1, kGiga / 4})); }, "embedding"},
      {"index_select", [&] { index_select(ones({1}), 0, expanded({int64_t{1} << 50}, i64)); }, "index_select"},
      {"gather", [&] { gather(ones({1}), 0, expanded({int64_t{1} << 50}, i64)); }, "gather"},
      {"cross_entropy", [&] { cross_entropy(scores, labels); }, ""},
      {"nll_loss", [&] { nll_loss(expanded({1, 2, kGiga, kGiga / 8}), expanded({1, kGiga, kGiga / 8}, i64)); }, ""},
      {"mse_loss", [&] { mse_loss(e, e); }, ""},
      {"l1_loss", [&] { l1_loss(e, e); }, ""},
      {"huber_loss", [&] { huber_loss(e, e); }, ""},
      {"smooth_l1_loss", [&] { smooth_l1_loss(e, e); }, ""},
      {"conv2d", [&] { conv2d(expanded({1, 1, kGiga, kGiga / 8}), ones({1, 1, 1, 1})); }, "conv2d"},
      {"conv2d, a copy", [&] { conv2d(expanded({1, 1, 2, kGiga * 128}), ones({1, 1, 1, 1}), {}, {.stride = {1, kGiga}}); }, "conv2d"},
      {"max_pool2d", [&] { max_pool2d(expanded({1, 1, kGiga, kGiga / 8}), {1, 1}); }, "max_pool2d"},
      {"avg_pool2d", [&] { avg_pool2d(expanded({1, 1, kGiga, kGiga / 8}), {1, 1}); }, "avg_pool2d"},
      {"adaptive_avg_pool2d", [&] { adaptive_avg_pool2d(ones({1, 1, 2, 2}), {kGiga, kGiga / 8}); }, "adaptive_avg_pool2d"},
  };
  using Unary = Tensor (*)(const Tensor&);
  using Binary = Tensor (*)(const Tensor&, const Tensor&);
  for (auto f : std::vector<Unary>{neg, abs, sign, square,  reciprocal, exp,  log,   sqrt, rsqrt, sin,
                                   cos, erf, tanh, sigmoid, relu,       silu, floor, ceil, round, logical_not})
    cases.push_back({"a pointwise function", [f, &e] { f(e); }, ""});
  for (auto f :
       std::vector<Binary>{add, sub, mul, div, maximum, minimum, pow, eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor})
    cases.push_back({"a pointwise function of two", [f, &e] { f(e, e); }, ""});
  cases.push_back({"gelu", [&e] { gelu(e); }, ""});
  cases.push_back({"clamp", [&e] { clamp(e, 0.0, 1.0); }, ""});
  require_errors<OutOfMemoryError>(cases);
  // What was asked, what there is, what is used.
  require_error<OutOfMemoryError>([&] { e + 1.0; }, "cannot allocate 2305843009213693952 bytes on ", " in total", " in live tensors", " reserved");
}

// The caller says how many views, values or elements are to be made.
BOOST_AUTO_TEST_CASE(counts_of_what_is_to_be_made) {
  const int64_t many = int64_t{1} << 40, most_pieces = int64_t{1} << 24;
  Tensor long_one = expanded({many}), none = zeros({0}), wide = expanded({kGiga, kGiga / 8});
  require_errors<ValueError>({
      {"split", [&] { split(long_one, 1); }, "split: dim 0 of shape (1099511627776,) would be split into 1099511627776 pieces, and at most 16777216 are made"},
      {"split", [&] { split(expanded({2, most_pieces + 1}), 1, -1); }, "split: dim 1 of shape (2, 16777217) would be split into 16777217 pieces"},
      {"split", [&] { split(none, kMin); }, "split: size must be positive"},
      {"chunk", [&] { chunk(long_one, many); }, "chunk: dim 0 of shape (1099511627776,) would be split into 1099511627776 pieces"},
      {"chunk", [&] { chunk(wide, kMax); }, "chunk: dim 0"},
      {"chunk", [&] { chunk(none, 1'000'000'000'000'000'000); }, "chunk: dim 0 of shape (0,) would be split into 1000000000000000000 pieces"},
      {"chunk", [&] { chunk(none, many); }, "chunk: dim 0"},
  });
  BOOST_CHECK_EQUAL(split(long_one, many / 4).size(), 4u);
  BOOST_CHECK_EQUAL(split(long_one, many - 1)[1].numel(), 1);
  BOOST_CHECK_EQUAL(chunk(long_one, 7).back().numel(), many - 6 * (many / 7 + 1));
  BOOST_CHECK_EQUAL(chunk(none, 5).size(), 5u);

  Tensor view = expanded({4 * kGiga, kGiga / 8}), row = expanded({int64_t{1} << 59}, u8);
  const std::string text = "elements of a tensor of shape (4294967296, 134217728) and type f32 is too large: cannot allocate ";
  require_errors<OutOfMemoryError>({
      {"to_vector", [&] { view.to_vector<float>(); }, text.c_str()},
      {"to_vector", [&] { view.to_vector<double>(); }, text.c_str()},
      {"to_vector", [&] { view.to_vector<bool>(); }, text.c_str()},
      {"to_vector", [&] { row.to_vector<double>(); }, "(576460752303423488,) and type u8"},
      {"to_vector", [&] { expanded({int64_t{1} << 44}).to_vector<uint8_t>(); }, "to_vector: a copy on the host of all 17592186044416 elements"},
  });
  require_errors<ShapeError>({
      {"tensor", [] { tensor(std::vector<float>{1}, {4 * kGiga, 4 * kGiga}); }, "tensor: shape (4294967296, 4294967296) has more elements"},
      {"tensor", [] { tensor(std::vector<int64_t>(), {4 * kGiga, 4 * kGiga}); }, "tensor: shape"},
      {"tensor", [] { tensor({1.f}, {-1, -1}); }, "tensor: shape (-1, -1) has a negative dimension"},
      {"numel", [] { Shape{4 * kGiga, 4 * kGiga}.numel(); }, "numel: shape (4294967296, 4294967296) has more elements"},
      {"numel", [] { Shape{kMax, kMax, 0}.numel(); }, "numel"},
      {"numel", [] { Shape{kMin, -1}.numel(); }, "numel"},
      {"strides", [] { Shape{1, kMax, kMax}.contiguous_strides(); }, "contiguous_strides: shape"},
  });
  BOOST_CHECK_EQUAL((Shape{kMax, 1}.numel()), kMax);
  BOOST_CHECK_EQUAL((Shape{kMax, kMax}.contiguous_strides()), (Shape{kMax, 1}));
}

BOOST_AUTO_TEST_CASE(factories) {
  const std::vector<Shape> shapes = {{(1LL << 62) + 16},
                                     {kMax},
                                     {2 * kGiga, 2 * kGiga},
                                     {2 * kGiga, 2 * kGiga, 2 * kGiga, 0},
                                     {0, 2 * kGiga, 4 * kGiga, 16},
                                     {-1},
                                     {kMin},
                                     {0, -1},
                                     {-2, -2},
                                     {kGiga / 4, kGiga / 4, 1, kMin}};
  for (auto& shape : shapes)
    require_errors<ShapeError>({
        {"empty", [&] { empty(shape); }, "empty: shape ("},
        {"zeros", [&] { zeros(shape, {.dtype = u8}); }, "zeros: shape ("},
        {"rand", [&] { rand(shape); }, "rand: shape ("},
        {"randn", [&] { randn(shape); }, "randn: shape ("},
        {"randint", [&] { randint(0, 2, shape); }, "randint: shape ("},
        {"from_host", [&] { from_host(nullptr, f32, shape, {}); }, "from_host: shape ("},
    });
  require_errors<OutOfMemoryError>({
      {"empty", [] { empty({kMax >> 4}); }, "cannot allocate"},
      {"full", [] { full({kGiga, kGiga / 4}, 1, {.dtype = f64}); }, "cannot allocate"},
      {"arange", [] { arange(0, 1e15); }, "cannot allocate"},
      {"randn", [] { randn({kGiga, kGiga / 4}); }, "cannot allocate"},
  });
  require_errors<ValueError>({
      {"arange", [] { arange(kNan, 1); }, "found nan, 1, 1"},
      {"arange", [] { arange(0, 1, kNan); }, "found 0, 1, nan"},
      {"arange", [] { arange(-kInfinity, 1); }, "finite"},
      {"arange", [] { arange(-1e308, 1e308, 1e-300); }, "more than can be addressed"},
      {"arange", [] { arange(0, 1e300); }, "from start 0 to end 1e+300 by step 1 there are 1e+300 elements"},
      {"full", [] { full({1}, kNan, {.dtype = i64}); }, "the number nan has no value in i64"},
      {"full", [] { full({1}, 1e300, {.dtype = i32}); }, "the number 1e+300 has no value in i32"},
      {"fill_", [] { zeros({1}, {.dtype = u8}).fill_(-kInfinity); }, "the number -inf"},
      {"uniform_", [] { zeros({1}).uniform_(kNan, 1); }, "uniform_"},
      {"uniform_", [] { zeros({1}).uniform_(-3e38, 3e38); }, "found [-3e+38, 3e+38)"},
      {"uniform_", [] { zeros({1}, {.dtype = f64}).uniform_(-1e308, 1e308); }, "uniform_"},
      {"normal_", [] { zeros({1}).normal_(kNan, 1); }, "normal_"},
      {"normal_", [] { zeros({1}).normal_(0, kNan); }, "normal_"},
      {"normal_", [] { zeros({1}).normal_(0, kInfinity); }, "normal_"},
      {"randint", [] { randint(kMax, kMin, {1}); }, "low < high"},
      {"randint", [] { randint(kMin, kMax, {1}, {.dtype = i32}); }, "do not fit"},
  });
  BOOST_CHECK_EQUAL(randint(kMin, kMax, {4}).numel(), 4);  // the whole range but one
  BOOST_CHECK(randint(kMin, kMin + 1, {1}).item<int64_t>() == kMin);
}

BOOST_AUTO_TEST_CASE(bounds_of_views) {
  Tensor x = tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3});
  require_errors({
      {"narrow", [&] { x.narrow(1, kMin, 1); }, "narrow: start -9223372036854775808"},
      {"narrow", [&] { x.narrow(1, kMax, 1); }, "narrow"},
      {"narrow", [&] { x.narrow(1, 1, kMax); }, "narrow"},
      {"narrow", [&] { x.narrow(1, 1, kMin); }, "narrow"},
      {"narrow", [&] { x.narrow(kMax, 0, 1); }, "narrow: dim"},
      {"slice", [&] { x.slice(1, 0, 3, 0); }, "step must be positive"},
      {"slice", [&] { x.slice(1, 0, 3, kMin); }, "step must be positive"},
      {"slice", [&] { x.slice(kMin, 0, 3); }, "slice: dim"},
      {"select", [&] { x.select(1, kMax); }, "select: index"},
      {"select", [&] { x.select(1, kMin); }, "select: index"},
      {"select", [&] { x.select(kMin, 0); }, "select: dim"},
      {"reshape", [&] { x.reshape({-1, -1}); }, "only one dimension"},
      {"reshape", [&] { x.reshape({kMin, -1}); }, "negative"},
      {"reshape", [&] { x.reshape({4 * kGiga, 4 * kGiga, -1}); }, "cannot give shape"},
      {"reshape", [&] { x.reshape({kMax, kMax}); }, "cannot give shape"},
      {"reshape", [&] { x.reshape({0, -1}); }, "cannot give shape"},
      {"view", [&] { x.view({kMax}); }, "view"},
      {"view", [&] { zeros({0}).view({kMax, 0}); }, "view"},
      {"expand", [&] { x.expand({kMin, 2, 3}); }, "expand"},
      {"expand", [&] { x.expand({-1, 2, 3}); }, "a new dimension needs a size"},
      {"flatten", [&] { x.flatten(kMin, kMax); }, "flatten"},
      {"transpose", [&] { x.transpose(kMax, 0); }, "transpose"},
      {"permute", [&] { x.permute({kMin, 0}); }, "permute"},
      {"unsqueeze", [&] { x.unsqueeze(kMax); }, "unsqueeze"},
      {"squeeze", [&] { x.squeeze(kMin); }, "squeeze"},
      {"size", [&] { x.size(kMin); }, "size"},
      {"split", [&] { split(x, kMin); }, "split: size"},
      {"split", [&] { split(x, Shape{kMax, kMax, 4}, 1); }, "split: sizes"},
      {"split", [&] { split(x, Shape{-1, 4}, 1); }, "split: sizes (-1, 4) do not add up, but must be 0 or more and add up to 3"},
      {"chunk", [&] { chunk(x, kMin); }, "chunk"},
      {"cat", [&] { cat({x, x}, kMax); }, "cat"},
      {"stack", [&] { stack({x, x}, kMin); }, "stack"},
      {"sum", [&] { sum(x, {kMax}); }, "sum"},
      {"softmax", [&] { softmax(x, kMin); }, "softmax"},
      {"gather", [&] { gather(x, kMax, zeros({2, 3}, {.dtype = i64})); }, "gather"},
      {"index_select", [&] { index_select(x, 0, full({1}, 9e18, {.dtype = i64})).wait(); }, "index_select"},
      {"embedding", [&] { embedding(full({1}, -9e18, {.dtype = i64}), x).wait(); }, "embedding"},
      {"embedding", [&] { embedding(zeros({1}, {.dtype = i64}), x, kMax); }, "padding_idx"},
      {"cross_entropy", [&] { cross_entropy(x, full({2}, 9e18, {.dtype = i64})).wait(); }, ""},
      {"cross_entropy", [&] { cross_entropy(x, zeros({2}, {.dtype = i64}), {.label_smoothing = kNan}); }, "found nan"},
      {"dropout", [&] { dropout(x, kNan); }, "found nan"},
      {"clone", [&] { x.expand({4, 2, 3}).copy_(x); }, "share one place"},
  });
  require_values(x.slice(1, kMin, kMax, kMax), {2, 1}, {1, 4});
  require_values(x.slice(1, kMax, kMin), {2, 0}, {});
  require_values(x.slice(1, -2, kMax, 2), {2, 1}, {2, 5});
  require_values(split(x, kMax, 1)[0], {2, 3}, {1, 2, 3, 4, 5, 6});
  BOOST_CHECK_EQUAL(chunk(x, kMax, 1).size(), 3u);
  BOOST_TEST(std::isinf(var(x, {}, kMax).item()));
  BOOST_TEST(var(x, {}, kMin).item() >= 0);
}

// clang-format on

// As views the largest extents work: strides, offsets and printing do not overflow.
BOOST_AUTO_TEST_CASE(views_of_the_largest_extent) {
  LittleMemory little;
  Tensor e = expanded({kGiga, kGiga - 1});
  BOOST_CHECK_EQUAL(e.t().narrow(1, kGiga - 1, 1).select(0, kGiga - 2).item(), 1);
  BOOST_CHECK_EQUAL(e.reshape({-1}).numel(), kGiga * (kGiga - 1));
  BOOST_CHECK_EQUAL(e.slice(1, 3, kMax, kGiga / 2).size(1), 2);
  BOOST_CHECK_EQUAL(squeeze(e.unsqueeze(1).unsqueeze(-1)).strides().str(), "(0, 0)");
  BOOST_CHECK_EQUAL(e[kGiga - 1].narrow(0, kGiga - 5, 4).sum().item(), 4);
  Tensor none = zeros({0, kGiga, kGiga - 1});
  BOOST_CHECK_EQUAL(none.strides()[0], kGiga * (kGiga - 1));
  BOOST_CHECK_EQUAL((none + 1.0).reshape({kGiga, 0, kGiga - 1}).select(2, kGiga - 2).sum().item(),
                    0);
  BOOST_CHECK_EQUAL(expanded(long_row).str().substr(0, 10), "tensor([1.");
  BOOST_CHECK_EQUAL(expanded({511, 2, int64_t{1} << 50}).str().substr(0, 12), "tensor([[[1.");
}

// clang-format off
BOOST_AUTO_TEST_CASE(geometry_of_windows) {
  Tensor x = ones({1, 1, 4, 4}), w = ones({1, 1, 2, 2});
  constexpr int64_t int_max = std::numeric_limits<int32_t>::max();
  std::vector<Case> cases = {
      {"groups", [&] { conv2d(x, w, {}, {.groups = kMax}); }, "groups"},
      {"groups", [&] { conv2d(x, w, {}, {.groups = kMin}); }, "groups must be at least 1"},
      {"padding", [&] { conv2d(x, w, {}, {.padding = {int_max, int_max}}); }, "conv2d"},
      {"scratch", [&] { conv2d(x, w, {}, {.stride = {int_max, int_max}, .padding = {kGiga / 4, kGiga / 4}, .dilation = {kGiga / 4, kGiga / 4}}); }, "conv2d"},
      {"a kernel like an ocean", [&] { conv2d(expanded({1, 1, 1LL << 50, 1}), expanded({1, 1, 1LL << 50, 1})); }, "conv2d"},
      {"a dilated ocean", [&] { conv2d(x, expanded({1, 1, int64_t{1} << 58, 1}), {}, {.dilation = {int_max, 1}}); }, "larger than the padded"},
      {"no channels", [&] { conv2d(zeros({1, 0, kGiga, kGiga / 4}), zeros({1, 0, 2, 2}), {}, {.dilation = {kGiga / 2, 1}}); }, ""},
      {"max_pool2d", [&] { max_pool2d(x, {2, 2}, {.dilation = {int_max, 1}}); }, "larger than the padded"},
      {"max_pool2d", [&] { max_pool2d(x, {kMax, 2}); }, "kernel_size must be two numbers of at most 2147483647"},
      {"avg_pool2d", [&] { avg_pool2d(x, {2, kMin}); }, "kernel_size must be two numbers of at least 1"},
      {"adaptive_avg_pool2d", [&] { adaptive_avg_pool2d(x, {kMin, 1}); }, "output_size"},
      {"adaptive_avg_pool2d", [&] { adaptive_avg_pool2d(x, {kMax, kMax}); }, "output_size"},
  };
  for (int64_t value : {kMax, int_max + 1, kMin}) {
    cases.push_back({"stride", [&x, &w, value] { conv2d(x, w, {}, {.stride = {value, 1}}); }, "stride must be"});
    cases.push_back({"padding", [&x, &w, value] { conv2d(x, w, {}, {.padding = {1, value}}); }, "padding must be"});
    cases.push_back({"dilation", [&x, &w, value] { conv2d(x, w, {}, {.dilation = {1, value}}); }, "dilation must be"});
    cases.push_back({"stride", [&x, value] { max_pool2d(x, {2, 2}, {.stride = {value, 1}}); }, "stride must be"});
    cases.push_back({"padding", [&x, value] { avg_pool2d(x, {2, 2}, {.padding = {1, value}}); }, "padding must be"});
    cases.push_back({"dilation", [&x, value] { max_pool2d(x, {2, 2}, {.dilation = {1, value}}); }, "dilation must be"});
  }
  require_errors(cases);

  // clang-format on
  // Windows far larger than the image: only what lies on it is visited.
  LittleMemory little;
  BOOST_CHECK_EQUAL(conv2d(x, w, {}, {.stride = {int_max, int_max}}).item(), 4);
  const Pair whole = {int_max, 5}, half = {int_max / 2, 2};
  BOOST_CHECK_EQUAL(max_pool2d(x, whole, {.stride = whole, .padding = half}).item(), 1);
  BOOST_TEST(
      avg_pool2d(x, whole, {.stride = whole, .padding = half, .count_include_pad = false}).item() ==
      1);
  BOOST_TEST(avg_pool2d(x, whole, {.stride = whole, .padding = half}).item() ==
                 12.0 / 5.0 / double(int_max),
             boost::test_tools::tolerance(1e-4));
  Tensor y = ones({1, 1, 4, 4}, {.requires_grad = true});
  avg_pool2d(y, whole, {.stride = whole, .padding = half, .count_include_pad = false})
      .sum()
      .backward();
  BOOST_TEST(y.grad().sum().item() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
