// What changes a tensor in place changes the tensor that was named, however it kPlacements in
// memory, and nothing beside it.
#include <algorithm>

#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/optimizer.h>
#include <tenon/core/random.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(in_place)

using namespace tenon;
using namespace tenon::test;

namespace {

// How a tensor of shape (4, 6) lies in a larger one.
struct Placement {
  const char* name;
  Shape whole;
  Tensor (*view)(const Tensor& whole);
};
const Placement kPlacements[] = {
    {"as it is",
     {4, 6},
     [](const Tensor& w) {
       return w.view({4, 6});
     }},
    {"transposed", {6, 4}, [](const Tensor& w) { return w.t(); }},
    {"every second column", {4, 12}, [](const Tensor& w) { return w.slice(1, 1, 12, 2); }},
    {"every second row, transposed",
     {12, 4},
     [](const Tensor& w) { return w.slice(0, 0, 12, 2).t(); }},
    {"rows of a larger one", {6, 6}, [](const Tensor& w) { return w.narrow(0, 1, 4); }},
    {"columns of a larger one", {4, 9}, [](const Tensor& w) { return w.narrow(1, 2, 6); }},
    {"one plane of three", {4, 6, 3}, [](const Tensor& w) { return w.select(2, 1); }},
};

// The values that `x` holds, laid out in this way; what kPlacements between them is -77.
struct Laid {
  Laid(const Placement& placement, const Tensor& x)
      : whole(full(placement.whole, -77, {.dtype = x.dtype()})), view(placement.view(whole)) {
    view.copy_(x);
  }
  Tensor whole, view;

  // Nothing but the view has changed.
  void require_rest_untouched(const Placement& placement) const {
    Tensor rest = whole.clone();
    placement.view(rest).fill_(-77);
    const auto found = rest.to_vector<double>();
    BOOST_TEST(std::all_of(found.begin(), found.end(), [](double v) { return v == -77; }),
               placement.name);
  }
};

Tensor values(double phase, DType dtype) { return sample({4, 6}, phase).to(dtype); }

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.to_vector<double>() == b.to_vector<double>();
}

// `step(lists)` on tensors in every way to placement, each list in another one, against the same on
// contiguous tensors.
using Lists = std::vector<std::vector<Tensor>>;
void compare_steps(size_t lists, DType dtype, const std::function<void(Lists&)>& step,
                   const std::string& what) {
  const size_t ways = std::size(kPlacements);
  for (size_t first = 0; first < ways; ++first)
    for (size_t shift : {0, 1, 3}) {
      Lists twins(lists), strided(lists);
      std::vector<std::vector<std::pair<Laid, const Placement*>>> laid(lists);
      for (size_t list = 0; list < lists; ++list)
        for (size_t p = 0; p < 2;
             ++p) {  // two parameters, of which the second is always contiguous
          const Placement& placement =
              p ? kPlacements[0] : kPlacements[(first + list * shift) % ways];
          const Tensor x =
              abs(values(static_cast<double>(list) + 0.37 * static_cast<double>(p), dtype));
          twins[list].push_back(x.clone());
          laid[list].emplace_back(Laid(placement, x), &placement);
          strided[list].push_back(laid[list].back().first.view);
        }
      for (int i = 0; i < 3; ++i) {
        step(twins);
        step(strided);
      }
      for (size_t list = 0; list < lists; ++list)
        for (size_t p = 0; p < 2; ++p) {
          auto& [tensors, placement] = laid[list][p];
          BOOST_TEST(same_bits(strided[list][p], twins[list][p]),
                     what << ", list " << list << ", parameter " << p << " " << placement->name
                          << ", shift " << shift);
          tensors.require_rest_untouched(*placement);
        }
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(optimizer_steps) {
  for (DType dtype : {f32, f64}) {
    const std::string type(name_of(dtype));
    compare_steps(
        2, dtype, [](Lists& l) { sgd_step(l[0], l[1], {}, {.lr = 0.1, .weight_decay = 0.2}); },
        "sgd " + type);
    for (bool nesterov : {false, true})
      compare_steps(
          3, dtype,
          [&](Lists& l) {
            sgd_step(l[0], l[1], l[2], {.lr = 0.1, .momentum = 0.9, .nesterov = nesterov});
          },
          "sgd with momentum " + type);
    for (bool decoupled : {false, true})
      compare_steps(
          4, dtype,
          [&](Lists& l) {
            adam_step(l[0], l[1], l[2], l[3], {},
                      {.lr = 0.1, .weight_decay = 0.1, .decoupled = decoupled, .step = 3});
          },
          "adam " + type);
    compare_steps(
        5, dtype,
        [](Lists& l) { adam_step(l[0], l[1], l[2], l[3], l[4], {.lr = 0.1, .amsgrad = true}); },
        "amsgrad " + type);
    for (bool centered : {false, true})
      compare_steps(
          4, dtype,
          [&](Lists& l) {
            const std::vector<Tensor> none, &last = l[3];
            rmsprop_step(l[0], l[1], l[2], centered ? last : none, centered ? none : last,
                         {.lr = 0.01, .momentum = centered ? 0 : 0.9, .centered = centered});
          },
          "rmsprop " + type);
    compare_steps(
        3, dtype, [](Lists& l) { adagrad_step(l[0], l[1], l[2], {.weight_decay = 0.1}); },
        "adagrad " + type);
    compare_steps(
        4, dtype, [](Lists& l) { nadam_step(l[0], l[1], l[2], l[3], {.step = 3}); },
        "nadam " + type);
    compare_steps(
        4, dtype, [](Lists& l) { radam_step(l[0], l[1], l[2], l[3], {.step = 7}); },
        "radam " + type);
    compare_steps(
        3, dtype, [](Lists& l) { lion_step(l[0], l[1], l[2], {.lr = 0.01}); }, "lion " + type);
  }
}

BOOST_AUTO_TEST_CASE(a_step_raises_the_version_of_what_it_changes_and_of_nothing_else) {
  Tensor p = values(0.1, f32).t(), g = values(0.2, f32).t();
  const uint64_t before = p.version(), other = g.version();
  std::vector<Tensor> params = {p}, gradients = {g};
  sgd_step(params, gradients, {}, {.lr = 0.5});
  BOOST_TEST(p.version() > before);
  BOOST_TEST(g.version() == other);
  Tensor leaf = values(0.1, f32).t().detach().requires_grad_();
  Tensor y = square(leaf).sum();
  params = {leaf};
  no_grad([&] { sgd_step(params, gradients, {}, {.lr = 0.5}); });
  require_error<AutogradError>([&] { y.backward(); }, "changed in place");
}

BOOST_AUTO_TEST_CASE(running_statistics) {
  for (DType dtype : {f32, f64}) {
    Tensor x = sample({5, 6}).to(dtype);
    Tensor mean = values(0.5, dtype)[1], var = abs(values(0.9, dtype)[2]);
    Tensor mean_twin = mean.clone(), var_twin = var.clone();
    Tensor many = full({6, 7}, -77, {.dtype = dtype}), more = full({12}, -77, {.dtype = dtype});
    Tensor strided_mean = many.select(1, 3), strided_var = more.slice(0, 1, 12, 2);
    strided_mean.copy_(mean);
    strided_var.copy_(var);
    const uint64_t before = strided_mean.version();
    for (int i = 0; i < 3; ++i) {
      Tensor expected = batch_norm(x, mean_twin, var_twin, {}, {}, true, 0.1, 1e-5);
      BOOST_TEST(
          same_bits(batch_norm(x, strided_mean, strided_var, {}, {}, true, 0.1, 1e-5), expected));
    }
    BOOST_TEST(same_bits(strided_mean, mean_twin));
    BOOST_TEST(same_bits(strided_var, var_twin));
    BOOST_TEST(!same_bits(strided_mean, mean));
    BOOST_TEST(strided_mean.version() > before);
    BOOST_TEST(same_bits(more.slice(0, 0, 12, 2), full({6}, -77, {.dtype = dtype})));
    BOOST_TEST(same_bits(batch_norm(x, strided_mean, strided_var, {}, {}, false, 0.1, 1e-5),
                         batch_norm(x, mean_twin, var_twin, {}, {}, false, 0.1, 1e-5)));
  }
}

BOOST_AUTO_TEST_CASE(copies_fills_and_random_numbers) {
  for (auto& placement : kPlacements)
    for (DType dtype : {f32, f64}) {
      auto compare = [&](const char* what, const std::function<void(Tensor&)>& change) {
        Tensor twin = values(0.1, dtype);
        Laid laid(placement, twin);
        const uint64_t before = laid.view.version();
        manual_seed(3);
        change(twin);
        manual_seed(3);
        change(laid.view);
        BOOST_TEST(same_bits(laid.view, twin), what << ", " << placement.name);
        BOOST_TEST(laid.view.version() > before, what << ", " << placement.name);
        laid.require_rest_untouched(placement);
      };
      compare("copy_", [&](Tensor& x) { x.copy_(values(2.0, dtype)); });
      compare("copy_ of a transposed", [&](Tensor& x) { x.copy_(sample({6, 4}).t()); });
      compare("fill_", [](Tensor& x) { x.fill_(2.5); });
      compare("zero_", [](Tensor& x) { x.zero_(); });
      compare("uniform_", [](Tensor& x) { x.uniform_(-1, 1); });
      compare("normal_", [](Tensor& x) { x.normal_(); });
    }
}

BOOST_AUTO_TEST_CASE(an_expanded_tensor_is_refused) {
  std::vector<Tensor> p = {ones({3, 1}).expand({3, 2})}, g = {ones({3, 2})}, m = {zeros({3, 2})},
                      v = {zeros({3, 2})};
  const std::string why =
      "several elements of this tensor of shape (3, 2) may share one place in memory";
  require_error<ValueError>([&] { sgd_step(p, g, {}, {}); },
                            "sgd_step: argument 0 is changed in place, but " + why);
  require_error<ValueError>([&] { adam_step(p, g, m, v, {}, {}); },
                            "adam_step: argument 0 is changed in place, but " + why);
  require_error<ValueError>([&] { sgd_step(g, g, p, {.momentum = 0.9}); },
                            "sgd_step: argument 2 is changed in place, but " + why);
  require_values(p[0], {3, 2}, {1, 1, 1, 1, 1, 1});
  sgd_step(m, p, {}, {.lr = 1});  // a gradient is only read
  require_values(m[0], {3, 2}, {-1, -1, -1, -1, -1, -1});
  Tensor one = ones({1}).expand({4}), four = ones({4});
  require_error<ValueError>(
      [&] {
        batch_norm(sample({3, 4}).to(f32), one, four, {}, {}, true, 0.1, 1e-5);
      },
      "batch_norm: running_mean is changed in place");
  require_error<ValueError>([&] { one.fill_(2); }, "fill_: several elements");
  require_error<ValueError>([&] { one.copy_(four); }, "copy_: several elements");
  require_error<ValueError>([&] { one.uniform_(); }, "several elements");
}

BOOST_AUTO_TEST_SUITE_END()
