// The onednn overlay computes what the base plugin computes: the same requests to both, made and
// run with their tables alone.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "plugin_folder.h"

BOOST_AUTO_TEST_SUITE(onednn_test)

using namespace tenon;
using namespace tenon::test;

namespace {

using Dims = std::vector<int64_t>;

struct Desc : tn_tensor_desc {
  Desc(const Dims& sizes, tn_dtype type = TN_F32, const Dims& steps = {}) : tn_tensor_desc{} {
    struct_size = sizeof(tn_tensor_desc);
    dtype = type;
    rank = static_cast<uint32_t>(sizes.size());
    int64_t dense = 1;
    for (size_t i = sizes.size(); i-- > 0; dense *= sizes[i]) {
      shape[i] = sizes[i];
      strides[i] = steps.empty() ? dense : steps[i];
    }
  }
  // Elements from the first to the last one.
  size_t extent() const {
    int64_t last = 0;
    for (uint32_t i = 0; i < rank; ++i) {
      if (shape[i] == 0) return 0;
      last += (shape[i] - 1) * strides[i];
    }
    return static_cast<size_t>(last) + 1;
  }
  Desc as(tn_dtype type) const {
    Desc other = *this;
    other.dtype = type;
    return other;
  }
};

struct Attr {
  Attr(const char* n, int64_t value) : name(n), kind(TN_ATTR_INT), number(value) {}
  Attr(const char* n, Dims values) : name(n), kind(TN_ATTR_INTS), numbers(std::move(values)) {}
  tn_attr raw() const {
    return {sizeof(tn_attr), name, kind, number, 0, nullptr, numbers.size(), numbers.data()};
  }
  const char* name;
  tn_attr_kind kind;
  int64_t number = 0;
  Dims numbers;
};

using Values = std::vector<float>;

// Numbers of which bf16 keeps all digits, so that both plugins get the same ones.
float rounded(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
std::vector<char> bytes_of(const Values& values, tn_dtype dtype) {
  const bool half = dtype == TN_BF16;
  std::vector<char> bytes(values.size() * (half ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(&bytes[i * (half ? 2 : 4)],
                reinterpret_cast<const char*>(&values[i]) + (half ? 2 : 0), half ? 2 : 4);
  return bytes;
}
Values values_of(const std::vector<char>& bytes, tn_dtype dtype) {
  const bool half = dtype == TN_BF16;
  Values values(bytes.size() / (half ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(reinterpret_cast<char*>(&values[i]) + (half ? 2 : 0), &bytes[i * (half ? 2 : 4)],
                half ? 2 : 4);
  return values;
}

struct Case {
  const char* op;
  std::vector<std::optional<Desc>> inputs;
  Desc output;
  std::vector<Attr> attrs = {};
};

// A plugin and its device cpu:0.
struct Planner {
  plugins::Backend* backend = nullptr;
  tn_device* device = nullptr;

  // What a run of the request gives, or the reason of a refusal.
  std::optional<Values> run(const Case& c, tn_dtype dtype, const std::vector<Values>& values,
                            std::string* reason = nullptr) const {
    std::vector<Desc> descs;
    descs.reserve(c.inputs.size());
    std::vector<const tn_tensor_desc*> inputs;
    std::vector<std::vector<char>> data;
    std::vector<void*> pointers;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      data.push_back(bytes_of(values[i], dtype));
      pointers.push_back(c.inputs[i] ? data.back().data() : nullptr);
      if (c.inputs[i]) descs.push_back(c.inputs[i]->as(dtype));
      inputs.push_back(c.inputs[i] ? &descs.back() : nullptr);
    }
    const Desc output = c.output.as(dtype);
    const tn_tensor_desc* outputs[] = {&output};
    std::vector<tn_attr> raw;
    for (auto& a : c.attrs) raw.push_back(a.raw());
    std::vector<const tn_attr*> attrs;
    for (auto& a : raw) attrs.push_back(&a);
    tn_op_request request{sizeof request, c.op,    inputs.size(), inputs.data(), 1,
                          outputs,        nullptr, attrs.size(),  attrs.data(),  0};
    tn_plan* plan = nullptr;
    if (tn_error* error = backend->api().plan_create(device, &request, &plan)) {
      const std::string text = plugins::take_message(error);
      if (reason) *reason = text;
      return std::nullopt;
    }
    // What a run leaves unwritten shows.
    std::vector<char> result(output.extent() * (dtype == TN_BF16 ? 2 : 4), char(0xff));
    std::vector<char> workspace(plan->workspace_bytes + 64, char(0xff));
    auto* aligned =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
    void* results[] = {result.data()};
    tn_run args{sizeof args, pointers.data(), results, nullptr, aligned,
                nullptr,     pointers.size(), 1,       0};
    tn_error* failed = plan->run(plan, &args);
    BOOST_REQUIRE_MESSAGE(!failed, (failed ? failed->message : ""));
    plan->destroy(plan);
    return values_of(result, dtype);
  }
};

struct Overlaid {
  Overlaid() {
    empty({1});  // the host has its threads
    base.backend = &registry.load("cpu");
    base.device = base.backend->open_device(0);
    for (auto* overlay : registry.overlays("cpu"))
      if (overlay->name() == "onednn") this->overlay = {overlay, overlay->open_device(0)};
  }
  plugins::Registry registry{{.paths = {build_dir() + "/lib/tenon/plugins"},
                              .environment = false,
                              .install_folder = false}};
  Planner base, overlay;
};
Overlaid& overlaid() {
  static auto& both = *new Overlaid;
  return both;
}

// A build without oneDNN has no overlay to try.
boost::test_tools::assertion_result is_built(boost::unit_test::test_unit_id) {
  return overlaid().overlay.backend != nullptr;
}
auto where_built() { return boost::unit_test::precondition(is_built); }

std::mt19937 generator(7);
int64_t draw(int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(generator);
}
Values random_values(size_t count) {
  Values values(count);
  for (auto& v : values) v = rounded(std::uniform_real_distribution<float>(-1, 1)(generator));
  return values;
}

std::string text_of(const Case& c) {
  std::string text = c.op;
  for (auto& d : c.inputs) {
    text += " (";
    for (uint32_t i = 0; d && i < d->rank; ++i)
      text += (i ? ", " : "") + std::to_string(d->shape[i]) + ":" + std::to_string(d->strides[i]);
    text += ")";
  }
  return text;
}

// Both compute `c` and agree but for rounding, where `sums` are what the largest sum of absolute
// values may be; the overlay gives the same bits twice. Returns false where the overlay refuses.
bool agree(const Case& c, tn_dtype dtype, double sums, const std::vector<Values>& given = {}) {
  std::vector<Values> values = given;
  for (size_t i = values.size(); i < c.inputs.size(); ++i)
    values.push_back(random_values(c.inputs[i] ? c.inputs[i]->extent() : 0));
  const auto got = overlaid().overlay.run(c, dtype, values);
  if (!got) return false;
  const auto again = overlaid().overlay.run(c, dtype, values);
  BOOST_TEST(std::memcmp(got->data(), again->data(), got->size() * sizeof(float)) == 0, text_of(c));
  std::string reason;
  const auto expected = overlaid().base.run(c, TN_F32, values, &reason);
  BOOST_REQUIRE_MESSAGE(expected, text_of(c) << ": " << reason);
  double worst = 0;
  for (size_t i = 0; i < got->size(); ++i) {
    const double e = (*expected)[i], g = (*got)[i];
    if (std::isnan(e) && std::isnan(g)) continue;
    const double allowed =
        2e-7 * sums + (dtype == TN_BF16 ? std::abs(e) / 128 + 1e-30 : std::abs(e) * 1e-6);
    worst = std::max(worst, e == g ? 0 : std::abs(e - g) / allowed);
    if (std::isnan(e) || std::isnan(g)) worst = INFINITY;
  }
  BOOST_TEST(worst <= 1, text_of(c) << " in " << (dtype == TN_BF16 ? "bf16" : "f32") << ": off by "
                                    << worst << " times what rounding explains");
  return true;
}

std::string refusal(const Case& c, tn_dtype dtype = TN_F32) {
  std::vector<Values> values;
  for (auto& d : c.inputs) values.push_back(random_values(d ? d->extent() : 0));
  std::string reason = "accepted";
  overlaid().overlay.run(c, dtype, values, &reason);
  return reason;
}

// A matrix in rows or in columns, with or without gaps.
Dims matrix_strides(int64_t rows, int64_t cols) {
  const int64_t gap = draw(0, 1) * draw(1, 5);
  return draw(0, 1) ? Dims{cols + gap, 1} : Dims{1, rows + gap};
}

bool has_bf16() {
  return refusal({"matmul", {Desc({4, 4}), Desc({4, 4})}, Desc({4, 4})}, TN_BF16) == "accepted";
}

}  // namespace

BOOST_AUTO_TEST_CASE(products_of_all_shapes_and_layouts, *where_built()) {
  int taken = 0;
  for (int i = 0; i < 120; ++i) {
    const int64_t large = i % 4 == 0 ? 300 : 40, m = draw(2, large), n = draw(2, large),
                  k = draw(1, large);
    const bool linear = draw(0, 1), bias = draw(0, 1);
    const Dims b = linear ? Dims{n, k} : Dims{k, n};
    Case c{
        linear ? "linear" : "matmul",
        {Desc({m, k}, TN_F32, matrix_strides(m, k)), Desc(b, TN_F32, matrix_strides(b[0], b[1]))},
        Desc({m, n})};
    if (linear) c.inputs.push_back(bias ? std::optional(Desc({n})) : std::nullopt);
    for (auto dtype : {TN_F32, TN_BF16}) taken += agree(c, dtype, static_cast<double>(k) + 1);
  }
  BOOST_TEST(taken >= (has_bf16() ? 240 : 120));
}

BOOST_AUTO_TEST_CASE(batches_of_products, *where_built()) {
  for (int i = 0; i < 40; ++i) {
    const int64_t p = draw(1, 3), q = draw(1, 4), m = draw(2, 50), n = draw(2, 50), k = draw(1, 50);
    // One right operand for all, or one for each; rows that go on from matrix to matrix, or not.
    const Dims a = draw(0, 1) ? Dims{q * m * k, m * k, k, 1}
                              : Dims{q * (m + 1) * k, (m + 1) * k, k, 1},
               b = draw(0, 1) ? Dims{0, 0, n, 1} : Dims{q * k * n, k * n, 1, k};
    const Case c{"matmul",
                 {Desc({p, q, m, k}, TN_F32, a), Desc({p, q, k, n}, TN_F32, b)},
                 Desc({p, q, m, n})};
    BOOST_TEST(agree(c, TN_F32, static_cast<double>(k)), text_of(c));
    if (has_bf16()) BOOST_TEST(agree(c, TN_BF16, static_cast<double>(k)), text_of(c));
  }
}

BOOST_AUTO_TEST_CASE(convolutions_in_all_directions, *where_built()) {
  int taken = 0, asked = 0;
  for (int i = 0; i < 60; ++i) {
    // Few channels and many, in blocks and not; images that the threads share evenly, and not.
    const bool wide = i % 3 == 0;
    const int64_t groups = draw(0, 4) == 0 ? draw(2, 3) : 1, n = draw(1, 7),
                  c = groups * (wide ? draw(1, 4) * 16 : draw(1, 20)),
                  o = groups * (wide ? draw(1, 5) * 16 : draw(1, 20)), kh = draw(1, 4),
                  kw = draw(1, 4), sh = draw(1, 2), sw = draw(1, 3), dh = draw(1, 2),
                  dw = draw(1, 2), ph = draw(0, (kh - 1) * dh), pw = draw(0, (kw - 1) * dw),
                  h = (kh - 1) * dh + draw(1, 14), w = (kw - 1) * dw + draw(1, 14),
                  oh = (h + 2 * ph - (kh - 1) * dh - 1) / sh + 1,
                  ow = (w + 2 * pw - (kw - 1) * dw - 1) / sw + 1;
    const Desc x({n, c, h, w}), weight({o, c / groups, kh, kw}), y({n, o, oh, ow});
    const std::vector<Attr> attrs = {Attr("stride", Dims{sh, sw}), Attr("padding", Dims{ph, pw}),
                                     Attr("dilation", Dims{dh, dw}), Attr("groups", groups)};
    const auto bias = draw(0, 1) ? std::optional(Desc({o})) : std::nullopt;
    const double inner = static_cast<double>(c / groups * kh * kw + 1);
    for (auto dtype : {TN_F32, TN_BF16}) {
      if (dtype == TN_BF16 && !has_bf16()) continue;
      asked += 3;
      taken += agree({"conv2d", {x, weight, bias}, y, attrs}, dtype, inner);
      taken += agree({"conv2d_backward_input", {y, weight}, x, attrs}, dtype,
                     static_cast<double>(o / groups * kh * kw));
      taken += agree({"conv2d_backward_weight", {y, x}, weight, attrs}, dtype,
                     static_cast<double>(n * oh * ow));
    }
  }
  // Of those with groups that do not fill blocks, oneDNN has only reference code.
  BOOST_TEST(taken >= asked * 2 / 3, taken << " of " << asked);
}

BOOST_AUTO_TEST_CASE(nan_and_infinity_stay, *where_built()) {
  for (const int64_t m : {int64_t{3}, int64_t{200}}) {
    const int64_t n = 40, k = 30;
    const Case plain{"linear", {Desc({m, k}), Desc({n, k}), Desc({n})}, Desc({m, n})};
    Values x = random_values(static_cast<size_t>(m * k));
    x[0] = NAN;
    x[static_cast<size_t>(k)] = INFINITY;
    BOOST_TEST(agree(plain, TN_F32, k, {x}));
    // The base does not fuse: relu of what it computes is expected.
    Case fused = plain;
    fused.op = "linear_relu";
    std::vector<Values> values = {x, random_values(static_cast<size_t>(n * k)), random_values(n)};
    for (auto dtype : {TN_F32, TN_BF16}) {
      const auto y = overlaid().overlay.run(plain, dtype, values);
      const auto relu = overlaid().overlay.run(fused, dtype, values);
      if (!y) continue;
      BOOST_REQUIRE(relu.has_value());
      BOOST_TEST(std::isnan((*relu)[0]));
      for (size_t i = 0; i < y->size(); ++i)
        if (!std::isnan((*y)[i])) BOOST_TEST((*relu)[i] == std::max(0.0f, (*y)[i]));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_it_refuses_and_why, *where_built()) {
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    return Case{"matmul", {Desc({m, k}), Desc({k, n})}, Desc({m, n})};
  };
  BOOST_TEST(has(refusal(product(0, 3, 4)), "no elements"));
  BOOST_TEST(has(refusal(product(5, 3, 0)), "no elements"));
  BOOST_TEST(has(refusal(product(1, 64, 64)), "limited by memory"));
  BOOST_TEST(has(refusal(product(64, 1, 64)), "limited by memory"));
  Case strided = product(8, 8, 8);
  strided.inputs[0] = Desc({8, 8}, TN_F32, {16, 2});
  BOOST_TEST(has(refusal(strided), "neither the rows nor the columns"));
  strided.inputs[0] = Desc({8, 8}, TN_F32, {0, 1});
  BOOST_TEST(has(refusal(strided), "neither the rows nor the columns"));
  BOOST_TEST(has(refusal({"exp", {Desc({4})}, Desc({4})}), "no kernel for operator \"exp\""));
}

BOOST_AUTO_TEST_SUITE_END()
