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

BOOST_AUTO_TEST_SUITE_END()
