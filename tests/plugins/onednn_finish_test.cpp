// What the onednn overlay adds to convolutions and products, and relu: bit for bit what the
// operators give one by one.
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "onednn_agree.h"

BOOST_AUTO_TEST_SUITE(onednn_finish_test)

using namespace tenon;
using namespace tenon::test;
using namespace tenon::test::overlaid;

namespace {

Desc channels_last_desc(const Dims& s) {
  return {s, TN_F32, {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]}};
}

// The overlay's plan of `c`, which has no more than its own inputs, followed by what is asked for.
void require_same_bits(const Case& c, tn_dtype dtype, bool residual, bool relu) {
  Case whole = c;
  if (residual) whole.inputs.push_back(c.output), whole.attrs.emplace_back("residual", true);
  if (relu) whole.attrs.emplace_back("activation", "relu");
  std::vector<Values> values;
  for (auto& d : whole.inputs) values.push_back(random_values(d ? d->extent() : 0));
  values[0][0] = NAN;
  values[0].back() = INFINITY;
  auto expected = both().overlay.run(c, dtype, {values.begin(), values.begin() + 3});
  std::string reason;
  const auto found = both().overlay.run(whole, dtype, values, &reason);
  BOOST_REQUIRE_MESSAGE((expected && found), text_of(whole) << ": " << reason);
  for (size_t i = 0; i < expected->size(); ++i) {
    float& y = (*expected)[i];
    if (residual) y += values[3][i];
    if (relu && y < 0) y = 0;
    // The sign of a NaN says nothing.
    if (std::isnan(y) && std::isnan((*found)[i])) (*expected)[i] = (*found)[i];
  }
  BOOST_TEST(std::memcmp(expected->data(), found->data(), found->size() * sizeof(float)) == 0,
             text_of(whole) << (residual ? " with a residual" : "") << (relu ? " and relu" : ""));
}

std::vector<Case> convolutions() {
  const auto attrs = [](int64_t padding) {
    return std::vector<Attr>{Attr("stride", Dims{1, 1}), Attr("padding", Dims{padding, padding}),
                             Attr("dilation", Dims{1, 1}), Attr("groups", 1)};
  };
  const auto same = [&](const Dims& x, int64_t o, bool bias, bool last) {
    const Dims y = {x[0], o, x[2], x[3]};
    return Case{"conv2d",
                {last ? channels_last_desc(x) : Desc(x), Desc({o, x[1], 3, 3}),
                 bias ? std::optional(Desc({o})) : std::nullopt},
                last ? channels_last_desc(y) : Desc(y),
                attrs(1)};
  };
  std::vector<Case> all = {{"conv2d",
                            {Desc({4, 32, 9, 11}), Desc({16, 32, 1, 1}), Desc({16})},
                            Desc({4, 16, 9, 11}),
                            attrs(0)},
                           {"conv2d",
                            {Desc({2, 16, 3, 3}), Desc({32, 16, 3, 3}), std::nullopt},
                            Desc({2, 32, 1, 1}),
                            attrs(0)}};
  // Cut by images, several at once and one by one; by channels; and in no parts.
  for (const bool last : {false, true}) {
    all.push_back(same({6, 16, 14, 14}, 16, true, last));
    all.push_back(same({8, 16, 40, 40}, 32, false, last));
    all.push_back(same({1, 32, 24, 20}, 64, true, last));
    all.push_back(same({1, 16, 5, 6}, 16, true, last));
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(convolutions_have_the_bits_of_the_operators_one_by_one, *where_built()) {
  for (auto& c : convolutions()) {
    for (auto [residual, relu] : {std::pair(true, false), {false, true}, {true, true}})
      require_same_bits(c, TN_F32, residual, relu);
    if (has_bf16()) require_same_bits(c, TN_BF16, false, true);
  }
}

BOOST_AUTO_TEST_CASE(products_have_the_bits_of_the_operators_one_by_one, *where_built()) {
  for (const int64_t m : {3, 40, 300})
    for (const int64_t n : {10, 700}) {
      const Case c{"linear", {Desc({m, 33}), Desc({n, 33}), Desc({n})}, Desc({m, n})};
      for (auto [residual, relu] : {std::pair(true, false), {false, true}, {true, true}})
        require_same_bits(c, TN_F32, residual, relu);
    }
}

BOOST_AUTO_TEST_CASE(what_has_other_bits_is_refused, *where_built()) {
  for (Case c : {convolutions()[0],
                 Case{"linear", {Desc({40, 32}), Desc({70, 32}), Desc({70})}, Desc({40, 70})}}) {
    c.attrs.emplace_back("activation", "tanh");
    BOOST_TEST(has(refusal(c), "of activations it computes relu alone, not tanh"), text_of(c));
    c.attrs.back() = Attr("residual", true);
    c.inputs.push_back(c.output);
    if (has_bf16()) BOOST_TEST(has(refusal(c, TN_BF16), "residuals are added in f32 alone"));
    c.inputs.back() = Desc({1, 1});
    BOOST_TEST(has(refusal(c), "the residual has the shape and dtype of the result"), text_of(c));
  }
  // Gradients take neither an activation nor a residual.
  Case gradient{"conv2d_backward_input",
                {Desc({2, 16, 7, 7}), Desc({16, 16, 3, 3})},
                Desc({2, 16, 9, 9}),
                convolutions()[1].attrs};
  BOOST_TEST(refusal(gradient) == "accepted");
  gradient.attrs.emplace_back("activation", "relu");
  BOOST_TEST(has(refusal(gradient), "activation"), refusal(gradient));
}

BOOST_AUTO_TEST_SUITE_END()
