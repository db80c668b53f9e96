#include <cmath>

#include <tenon/core/ops/optimizer.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(optimizer)

using namespace tenon;
using namespace tenon::test;

// Values over many steps are in cases.h; here is what one call promises.

BOOST_AUTO_TEST_CASE(many_parameters_step_in_place) {
  std::vector<Tensor> params = {doubles({1, 2}, {2}), doubles({3}, {}), zeros({0}, {.dtype = f64})};
  std::vector<Tensor> gradients = {doubles({10, 20}, {2}), doubles({30}, {}),
                                   zeros({0}, {.dtype = f64})};
  params[0].requires_grad_();
  uint64_t version = params[0].version();
  sgd_step(params, gradients, {}, {.lr = 0.1});
  require_values(params[0].detach(), {2}, {0, 0});
  require_values(params[1], {}, {0});
  BOOST_CHECK_GT(params[0].version(), version);
  BOOST_CHECK(params[0].is_leaf());
  sgd_step({}, {}, {}, {});
}

BOOST_AUTO_TEST_CASE(first_step_of_momentum_takes_the_gradient) {
  std::vector<Tensor> p = {doubles({1}, {1})}, g = {doubles({2}, {1})}, m = {doubles({100}, {1})};
  sgd_step(p, g, m, {.lr = 0.5, .momentum = 0.9, .dampening = 0.3, .first = true});
  require_values(m[0], {1}, {2});
  require_values(p[0], {1}, {0});
  sgd_step(p, g, m, {.lr = 0.5, .momentum = 0.9, .dampening = 0.5});
  require_values(m[0], {1}, {2.8});
}

BOOST_AUTO_TEST_CASE(maximize_turns_the_step_around) {
  std::vector<Tensor> p = {doubles({1}, {1})}, g = {doubles({2}, {1})};
  sgd_step(p, g, {}, {.lr = 0.5, .maximize = true});
  require_values(p[0], {1}, {2});
  std::vector<Tensor> m = {zeros({1}, {.dtype = f64})}, v = {zeros({1}, {.dtype = f64})};
  adam_step(p, g, m, v, {}, {.lr = 0.5, .maximize = true});
  require_values(p[0], {1}, {2.5}, 1e-7);
}

BOOST_AUTO_TEST_CASE(infinite_parameters_without_weight_decay_stay) {
  for (const bool amsgrad : {false, true}) {
    std::vector<Tensor> p = {floats({INFINITY, 1}, {2})}, g = {ones({2})}, m = {zeros({2})},
                        v = {zeros({2})}, most = {zeros({2})};
    adam_step(p, g, m, v, amsgrad ? std::span<const Tensor>(most) : std::span<const Tensor>(),
              {.lr = 0.1, .amsgrad = amsgrad});
    require_values(p[0], {2}, {INFINITY, 0.9}, 1e-6);
    require_values(m[0], {2}, {0.1, 0.1}, 1e-6);
  }
}

// In f16 and bf16, too: computed in f32, of which every tensor that changes is rounded once.
BOOST_AUTO_TEST_CASE(halves_are_stepped_in_f32) {
  DeviceGuard on_cpu("cpu");
  for (DType t : {f16, bf16}) {
    const auto list = [&](double phase) { return sample({3000}, phase).to(t); };
    std::vector<Tensor> p = {list(0), list(1).narrow(0, 0, 7).clone()},
                        g = {list(2), list(3).narrow(0, 0, 7).clone()}, m, v, wide[4];
    for (auto& x : p) m.push_back(zeros_like(x)), v.push_back(zeros_like(x));
    for (size_t i = 0; i < 2; ++i)
      for (size_t k = 0; k < 4; ++k)
        wide[k].push_back((k == 0 ? p : k == 1 ? g : k == 2 ? m : v)[i].to(f32));
    adam_step(p, g, m, v, {}, {.lr = 0.1, .weight_decay = 0.1});
    adam_step(wide[0], wide[1], wide[2], wide[3], {}, {.lr = 0.1, .weight_decay = 0.1});
    for (size_t i = 0; i < 2; ++i) {
      require_equal(p[i], wide[0][i].to(t));
      require_equal(m[i], wide[2][i].to(t));
      require_equal(v[i], wide[3][i].to(t));
    }
    sgd_step(p, g, m, {.lr = 0.1, .momentum = 0.9});
    BOOST_CHECK(p[0].dtype() == t);
  }
}

BOOST_AUTO_TEST_CASE(bad_input) {
  std::vector<Tensor> p = {zeros({2}), zeros({3})}, one = {zeros({2})},
                      twisted = {zeros({3}), zeros({2})};
  std::vector<Tensor> mixed = {zeros({2}), zeros({3}, {.dtype = f64})},
                      undefined = {zeros({2}), Tensor()};
  require_error<ValueError>([&] { sgd_step(p, one, {}, {}); },
                            "sgd_step: 2 parameters, but 1 gradients or states");
  require_error<ValueError>([&] { sgd_step(p, {}, {}, {}); }, "gradients are needed");
  require_error<ValueError>([&] { sgd_step(p, p, p, {}); }, "momentum buffers were given");
  require_error<ValueError>([&] { adam_step(p, p, p, p, {}, {.amsgrad = true}); },
                            "largest second moments are needed");
  require_error<ValueError>([&] { adam_step(p, p, p, p, {}, {.step = 0}); }, "step counts from 1");
  require_error<ShapeError>([&] { sgd_step(p, twisted, {}, {}); },
                            "of shape (3,) does not fit parameter 0 of shape (2,)");
  require_error<DTypeError>([&] { sgd_step(p, mixed, {}, {}); }, "argument 3 has dtype f64");
  require_error<ValueError>([&] { sgd_step(p, undefined, {}, {}); },
                            "argument 3 is an undefined tensor");
}

// Where the average of squares is the square of the average, rounding may leave less than nothing.
BOOST_AUTO_TEST_CASE(a_constant_gradient_of_centered_rmsprop_is_no_nan) {
  for (DType dtype : {f32, f64}) {
    const std::vector<Tensor> p = {zeros({1031}, {.dtype = dtype})},
                              g = {full({1031}, 0.1, {.dtype = dtype})},
                              v = {full({1031}, 0.01, {.dtype = dtype})},
                              mean = {full({1031}, 0.1, {.dtype = dtype})};
    for (int i = 0; i < 5; ++i)
      rmsprop_step(p, g, v, mean, {}, {.lr = 1e-9, .alpha = 0.3, .centered = true});
    for (double x : p[0].to_vector<double>()) BOOST_REQUIRE(std::isfinite(x));
  }
}

// The variance of the average square is not known before the sixth step of RAdam with its defaults.
BOOST_AUTO_TEST_CASE(first_steps_of_radam_have_momentum_alone) {
  const std::vector<Tensor> g = {doubles({1, 1000}, {2})};
  auto first = [&](int64_t step) {
    const std::vector<Tensor> p = {doubles({0, 0}, {2})}, m = {doubles({0, 0}, {2})},
                              v = {doubles({0, 0}, {2})};
    radam_step(p, g, m, v, {.lr = 1, .beta1 = 0, .step = step});
    return p[0].to_vector<double>();
  };
  BOOST_TEST(first(5) == (std::vector<double>{-1, -1000}), boost::test_tools::per_element());
  BOOST_TEST(std::abs(first(6)[0] / first(6)[1] - 1) < 1e-6);
}

BOOST_AUTO_TEST_CASE(lion_steps_by_the_sign) {
  const std::vector<Tensor> p = {doubles({1, 1, 1}, {3})}, g = {doubles({4, 0, -0.01}, {3})},
                            m = {zeros({3}, {.dtype = f64})};
  lion_step(p, g, m, {.lr = 0.25, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.4});
  require_values(p[0], {3}, {0.65, 0.9, 1.15}, 1e-12);
  require_values(m[0], {3}, {1, 0, -0.0025}, 1e-12);
}

BOOST_AUTO_TEST_CASE(bad_input_of_the_adaptive_steps) {
  const std::vector<Tensor> p = {zeros({2})}, two = {p[0], p[0]}, other = {zeros({3})},
                            wide = {zeros({2}, {.dtype = f64})};
  require_error<ValueError>([&] { rmsprop_step(p, p, p, {}, {}, {.centered = true}); },
                            "rmsprop_step: averages of gradients are needed");
  require_error<ValueError>([&] { rmsprop_step(p, p, p, {}, p, {}); },
                            "rmsprop_step: momentum buffers were given");
  require_error<ValueError>([&] { adagrad_step(p, p, p, {.step = 0}); },
                            "adagrad_step: step counts from 1, found 0");
  require_error<ValueError>([&] { nadam_step(p, {}, p, p, {}); },
                            "nadam_step: gradients are needed");
  require_error<ShapeError>([&] { radam_step(p, other, p, p, {}); }, "of shape (3,) does not fit");
  require_error<DTypeError>([&] { lion_step(p, wide, p, {}); },
                            "lion_step: argument 1 has dtype f64");
  require_error<ShapeError>([&] { adadelta_step(p, p, other, p, {}); },
                            "adadelta_step: a gradient or state of shape (3,) does not fit "
                            "parameter 0 of shape (2,)");
  require_error<DTypeError>([&] { adamax_step(p, wide, p, p, {}); },
                            "adamax_step: argument 1 has dtype f64");
  require_error<ValueError>([&] { asgd_step(p, p, {}, {}); }, "asgd_step: averages are needed");
  require_error<ValueError>([&] { rprop_step(p, two, p, p, {}); },
                            "rprop_step: 1 parameters, but 2 gradients or states");
}

BOOST_AUTO_TEST_SUITE_END()
