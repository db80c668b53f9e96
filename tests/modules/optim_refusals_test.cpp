// What optimizers refuse: states of others, options outside their range, groups that there are not.
#include <tenon/modules/optim/adam.h>
#include <tenon/modules/optim/sgd.h>

#include "modules/stepped.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(optim_refusals_test)

using namespace tenon;
using namespace tenon::test;

BOOST_AUTO_TEST_CASE(foreign_state_is_refused) {
  Tensor p = leaf(ones({2})), q = leaf(ones({3}));
  optim::Adam adam({p}), other({q});
  optim::SGD sgd({p});
  step_with(adam, p, ones({2}));
  auto state = adam.state_dict();
  require_error<StateDictError>(
      [&] { sgd.load_state_dict(state); },
      "Error in loading state_dict for SGD: it has no \"param_groups.0.momentum\"");
  require_error<StateDictError>([&] { other.load_state_dict(state); },
                                "\"state.0.exp_avg\" has shape (2,), the parameter (3,)");
  BOOST_TEST(other.state_dict().tensors.size() == 0u);
  state.numbers.emplace_back("state.5.step", 1);
  require_error<StateDictError>([&] { adam.load_state_dict(state); },
                                "unexpected \"state.5.step\"");
}

// The averages of Adam belong to its count of steps: the correction of their bias after a hundred
// steps is wrong for averages that begin at zero.
BOOST_AUTO_TEST_CASE(state_without_its_tensors_is_refused) {
  Tensor p = leaf(ones({2})), q = leaf(ones({2}));
  optim::Adam adam({p}), fresh({q});
  step_with(adam, p, ones({2}));
  auto bare = adam.state_dict();
  bare.tensors = {};
  require_error<StateDictError>(
      [&] { fresh.load_state_dict(bare); },
      "Error in loading state_dict for Adam: it has no \"state.0.exp_avg\", although "
      "\"state.0.step\" is 1");
  auto uncounted = adam.state_dict();
  std::erase_if(uncounted.numbers, [](auto& n) { return n.first == "state.0.step"; });
  require_error<StateDictError>([&] { fresh.load_state_dict(uncounted); },
                                "it has \"state.0.exp_avg\", but no \"state.0.step\"");
  auto undefined = adam.state_dict();
  undefined.tensors.set("state.0.exp_avg", Tensor());
  require_error<StateDictError>([&] { fresh.load_state_dict(undefined); },
                                "\"state.0.exp_avg\" is an undefined tensor");
  BOOST_TEST(fresh.state_dict().tensors.size() == 0u);

  adam.options().amsgrad = true;  // from the next step on there is a third average
  fresh.load_state_dict(adam.state_dict());
  BOOST_TEST(fresh.options().amsgrad);
  BOOST_TEST(fresh.state_dict().tensors.size() == 3u);

  optim::SGD sgd({p}), later({q});  // whose buffer begins with the first gradient that it sees
  step_with(sgd, p, ones({2}));
  sgd.options().momentum = 0.9;
  later.load_state_dict(sgd.state_dict());
  BOOST_TEST(later.options().momentum == 0.9);
}

BOOST_AUTO_TEST_CASE(options_that_were_changed_are_checked) {
  Tensor p = leaf(ones({2})), q = leaf(ones({2}));
  const std::vector<float> ones_before = {1, 1};
  optim::Adam adam({p});
  adam.options().betas = {2, 3};
  require_error<ValueError>([&] { step_with(adam, p, ones({2})); },
                            "Adam: betas[0] is 2; it has to be at least 0 and below 1");
  BOOST_TEST(p.to_vector<float>() == ones_before);

  optim::SGD sgd({{{p}, {}}, {{q}, {}}});
  sgd.options(1).lr = -5;
  p.set_grad(ones({2}));
  require_error<ValueError>([&] { step_with(sgd, q, ones({2})); },
                            "SGD: lr is -5; it has to be finite and at least 0");
  BOOST_TEST(p.to_vector<float>() == ones_before);  // no group has made a step
  sgd.options(1).lr = 0.5;
  step_with(sgd, q, ones({2}));
  BOOST_TEST(q.to_vector<float>() == (std::vector<float>{0.5, 0.5}));

  auto state = sgd.state_dict();
  auto set = [&](const char* key, double value) {
    for (auto& [name, number] : state.numbers)
      if (name == key) number = value;
  };
  set("param_groups.0.lr", 0.25), set("param_groups.1.lr", -1);
  require_error<StateDictError>([&] { sgd.load_state_dict(state); },
                                "Error in loading state_dict for SGD: SGD: lr is -1");
  set("param_groups.1.lr", 0.25), set("param_groups.1.nesterov", 7);
  require_error<StateDictError>([&] { sgd.load_state_dict(state); },
                                "\"param_groups.1.nesterov\" is 7; it has to be 0 or 1");
  BOOST_TEST((sgd.lr(0) == 1e-3 && sgd.lr(1) == 0.5));
}

BOOST_AUTO_TEST_CASE(groups_that_there_are_not) {
  optim::SGD sgd({leaf(ones({2}))});
  optim::Adam adam({leaf(ones({2}))});
  const char* text = "SGD: there is no group 3 of parameters; it has 1, counted from 0";
  require_error<IndexError>([&] { sgd.params(3); }, text);
  require_error<IndexError>([&] { sgd.options(3); }, text);
  require_error<IndexError>([&] { sgd.lr(3); }, text);
  require_error<IndexError>([&] { sgd.set_lr(1, 3); }, text);
  require_error<IndexError>([&] { adam.options(1); }, "Adam: there is no group 1 of parameters");
}

BOOST_AUTO_TEST_SUITE_END()
