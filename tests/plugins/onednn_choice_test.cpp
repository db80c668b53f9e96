// What the onednn overlay computes, and what it leaves to others, who are faster.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "onednn_agree.h"

BOOST_AUTO_TEST_SUITE(onednn_choice_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::overlaid;

namespace {
const std::vector<Attr> kNoPadding = {Attr("stride", Dims{1, 1}), Attr("padding", Dims{0, 0}),
                                      Attr("dilation", Dims{1, 1}), Attr("groups", 1)};
}  // namespace

// Where the gradient is larger than the images, the base takes longer to bring it to rows. AVX-512
// takes depthwise ones in blocks; AVX2 makes no copy of rows that are a multiple of 2 KiB apart;
// with less, the overlay leaves most convolutions to the base.
BOOST_AUTO_TEST_CASE(estimates_say_who_is_faster, *where_built()) {
  const auto is_the_overlays = [](const Case& c) { return costs(c).first < costs(c).second; };
  // Sums over channels are made of whole blocks.
  const Desc wide({8, 64, 20, 20}), narrow({8, 3, 18, 18}), few({3, 64, 3, 3});
  BOOST_TEST(!is_the_overlays({"conv2d_backward_input", {narrow, few}, wide, kNoPadding}));
  if (vector_lanes() < 8) return;
  BOOST_TEST(is_the_overlays(weight_gradient(1, 512, 7, 1)));
  const Case depthwise = weight_gradient(8, 64, 32, 64);
  BOOST_TEST(agree(depthwise, TN_F32, 8 * 32 * 32));
  if (vector_lanes() == 16) {
    BOOST_TEST(is_the_overlays(depthwise));
    BOOST_TEST(costs(weight_gradient(8, 64, 56, 1)).first >
               1.08 * costs(weight_gradient(8, 256, 14, 1)).first);  // as many multiply-adds
  } else {
    BOOST_TEST(!is_the_overlays(
        {"matmul", {Desc({256, 1024}), Desc({1024, 1024})}, Desc({256, 1024}), {}}));
  }
}

// The core computes them in f32: few channels leave most of oneDNN's blocks empty.
BOOST_AUTO_TEST_CASE(bf16_that_is_faster_in_f32_is_left_to_the_core, *where_built()) {
  if (!has_bf16()) return;
  const auto reasons = [](int64_t c, int64_t o) {
    const Desc x({8, c, 20, 20}), weight({o, c, 3, 3}), y({8, o, 18, 18});
    std::string text;
    for (const Case& direction : {Case{"conv2d", {x, weight, std::nullopt}, y, kNoPadding},
                                  {"conv2d_backward_input", {y, weight}, x, kNoPadding},
                                  {"conv2d_backward_weight", {y, x}, weight, kNoPadding}})
      text += has(refusal(direction, TN_BF16), "f32 is faster") ? "f32 " : "bf16 ";
    return text;
  };
  BOOST_TEST(reasons(1, 6) == "f32 f32 f32 ");
  BOOST_TEST(reasons(3, 32) == "bf16 f32 bf16 ");
  BOOST_TEST(reasons(6, 16) == "bf16 bf16 bf16 ");
  BOOST_TEST(reasons(32, 3) == "f32 f32 f32 ");
  BOOST_TEST(reasons(32, 32) == "bf16 bf16 bf16 ");
  const Case halves{
      "avg_pool2d",
      {Desc({2, 6, 28, 28})},
      Desc({2, 6, 14, 14}),
      {Attr("kernel_size", Dims{2, 2}), Attr("stride", Dims{2, 2}), Attr("padding", Dims{0, 0}),
       Attr("ceil_mode", false), Attr("count_include_pad", true)}};
  BOOST_TEST(has(refusal(halves, TN_BF16), "faster in f32"));
  const Case by_vector{"matmul", {Desc({400, 400}), Desc({400, 1})}, Desc({400, 1})},
      vector_by{"matmul", {Desc({1, 400}), Desc({400, 400})}, Desc({1, 400})};
  BOOST_TEST(has(refusal(by_vector, TN_BF16), "f32 is faster"));
  BOOST_TEST(refusal(vector_by, TN_BF16) == "accepted");
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
