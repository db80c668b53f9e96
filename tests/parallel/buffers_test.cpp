// State that modules change while DataParallel runs them: that of the first device lasts. And what
// they compute of parameters without their history.
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/random.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/optim/sgd.h>
#include <tenon/modules/parametrizations.h>

#include "ops/check.h"
#include "parallel/trained.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(buffers_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const std::vector<Device> two = {"cpu:0", "cpu:1"};

// Counts its calls and sums up what it has seen, each rule in its own way.
struct Changed : nn::Module<Changed> {
  nn::Buffer calls = nn::Buffer(zeros({})), seen = nn::Buffer(zeros({3}));
  Tensor forward(const Tensor& x) {
    NoGrad guard;
    calls.copy_(calls + 1);
    seen.copy_(seen + x.sum({0}));
    return x + seen;
  }
};
struct Assigned : nn::Module<Assigned> {
  nn::Buffer calls = nn::Buffer(zeros({})), seen = nn::Buffer(zeros({3}));
  Tensor forward(const Tensor& x) {
    calls = calls + 1;
    seen = seen * 0.5 + x.detach().sum({0});
    return x + seen;
  }
};
struct Filled : nn::Module<Filled> {
  nn::Buffer place = nn::Buffer(full({2}, -1));
  Tensor forward(const Tensor& x) {
    place.fill_(static_cast<double>(x.device().index()));
    return x + place[0];
  }
};
struct Lazy : nn::Module<Lazy> {
  nn::Buffer scale;
  Tensor forward(const Tensor& x) {
    if (!scale.defined()) scale = amax(x.detach());
    return x * scale;
  }
};
struct Plain : nn::Module<Plain> {
  Tensor mask = ones({3}, {.device = two[0]});
  nn::Buffer buffer = nn::Buffer(ones({3}));
  Tensor forward(const Tensor& x) { return x * mask + buffer; }
};

using Values = std::vector<double>;

Tensor rows() { return tensor(Values{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}, {4, 3}); }

}  // namespace

// So small a share of the batch that it is rounded to no row.
BOOST_AUTO_TEST_CASE(the_first_device_runs_and_its_changes_last_whatever_its_share) {
  const nn::DataParallelOptions uneven{.weights = {1, 9}};
  nn::DataParallel changed(Changed(), two, uneven);
  for (int call = 1; call <= 3; ++call) {
    changed(rows());
    BOOST_TEST(changed.module.calls.item<float>() == static_cast<float>(call));
  }
  BOOST_TEST(changed.module.seen.to_vector<float>()[0] == 18.0f);
  nn::DataParallel assigned(Assigned(), two, uneven);
  assigned(rows());
  assigned(rows());
  BOOST_TEST(assigned.module.calls.item<float>() == 2.0f);
  BOOST_TEST((assigned.module.seen.device() == two[0]));
  require_error<ValueError>(
      [] {
        nn::DataParallel(Changed(), two, {.weights = {0, 1}});
      },
      "the weight of the first device");
}

BOOST_AUTO_TEST_CASE(each_device_changes_its_own_and_the_first_lasts) {
  nn::DataParallel model(Changed(), two);
  // The rows 1, 1 are summed on the first device, 2, 2 on the second; both begin with 0.
  BOOST_TEST(model(rows()).to_vector<double>() == (Values{3, 3, 3, 3, 3, 3, 6, 6, 6, 6, 6, 6}));
  BOOST_TEST(model(rows()).to_vector<double>() == (Values{5, 5, 5, 5, 5, 5, 8, 8, 8, 8, 8, 8}));
  BOOST_TEST(model.module.calls.item<double>() == 2);
  BOOST_TEST(model.module.seen.to_vector<double>() == (Values{4, 4, 4}));
  BOOST_TEST(model.module.seen.device() == two[0]);
}

BOOST_AUTO_TEST_CASE(assigned_buffers_as_well) {
  nn::DataParallel model(Assigned(), two);
  BOOST_TEST(model(rows()).to_vector<double>() == (Values{3, 3, 3, 3, 3, 3, 6, 6, 6, 6, 6, 6}));
  BOOST_TEST(model(rows()).to_vector<double>() == (Values{4, 4, 4, 4, 4, 4, 7, 7, 7, 7, 7, 7}));
  BOOST_TEST(model.module.calls.item<double>() == 2);
  BOOST_TEST(model.module.seen.to_vector<double>() == (Values{3, 3, 3}));
  BOOST_TEST(model.module.seen.device() == two[0]);
}

BOOST_AUTO_TEST_CASE(filled_on_the_device_that_fills) {
  nn::DataParallel model(Filled(), two);
  BOOST_TEST(model(zeros({2, 1})).to_vector<double>() == (Values{0, 1}));
  BOOST_TEST(model.module.place.to_vector<double>() == (Values{0, 0}));
  // Outside of a call the guard of another device does not keep a change from the buffer.
  DeviceGuard guard(two[1]);
  model.module.place.fill_(7);
  BOOST_TEST(model.module.place.to_vector<double>() == (Values{7, 7}));
}

// The backward pass uses the values that each part has computed with.
BOOST_AUTO_TEST_CASE(gradients_are_those_of_each_part) {
  struct Scaled : nn::Module<Scaled> {
    nn::Buffer scale = nn::Buffer(zeros({}));
    Tensor forward(const Tensor& x) {
      no_grad([&] { scale.copy_(scale + amax(x.detach())); });
      return x * scale;
    }
  };
  Tensor x = rows().requires_grad_();
  nn::DataParallel(Scaled(), two)(x).sum().backward();
  BOOST_TEST(x.grad().to_vector<double>() == rows().to_vector<double>());
}

// A parameter that forward changes begins each part with its value from before the call. Its
// gradient is refused, rather than computed from another part's value.
BOOST_AUTO_TEST_CASE(parameters_that_forward_changes) {
  struct Halved : nn::Module<Halved> {
    nn::Parameter weight = nn::Parameter(full({}, 4.0));
    Tensor forward(const Tensor& x) {
      no_grad([&] { weight.copy_(weight * 0.5); });
      return x * weight;
    }
  };
  nn::DataParallel model(Halved(), two);
  Tensor x = ones({2, 1}).requires_grad_(), y = model(x);
  BOOST_TEST(y.to_vector<double>() == (Values{2, 2}));
  BOOST_TEST(model.module.weight.item<double>() == 2);
  require_error<AutogradError>([&] { y.sum().backward(); }, "changed in place");
}

BOOST_AUTO_TEST_CASE(a_failing_part_leaves_what_the_first_made) {
  struct Failing : nn::Module<Failing> {
    nn::Buffer calls = nn::Buffer(zeros({}));
    Tensor forward(const Tensor& x) {
      calls = calls + 1;
      if (x.device() != two[0]) throw ValueError("refused");
      return x;
    }
  };
  nn::DataParallel model(Failing(), two);
  require_error<ValueError>([&] { model(ones({2, 1})); }, "refused");
  BOOST_TEST(model.module.calls.item<double>() == 1);
  BOOST_TEST(model.module.calls.device() == two[0]);
}

BOOST_AUTO_TEST_CASE(a_buffer_made_by_the_first_part_is_read_by_the_others) {
  nn::DataParallel model(Lazy(), two);
  BOOST_TEST(model(rows()).to_vector<double>() == rows().to_vector<double>());
  BOOST_TEST(model.module.scale.item<double>() == 1);
}

BOOST_AUTO_TEST_CASE(tied_buffers_stay_tied) {
  struct Tied : nn::Module<Tied> {
    Changed a, b = a;
    Tensor forward(const Tensor& x) { return a(x) + b(x); }
  };
  nn::DataParallel model(Tied(), two);
  model(rows());
  BOOST_TEST(model.module.a.calls.is_same(model.module.b.calls));
  BOOST_TEST(model.module.a.calls.item<double>() == 2);
}

BOOST_AUTO_TEST_CASE(a_plain_tensor_is_told_to_be_a_buffer) {
  nn::DataParallel model(Plain(), two);
  require_error<DeviceError>([&] { model(rows()); }, "mul", "is on cpu:0", "cpu:1", "nn::Buffer");
}

// detach() of a parameter, as of a buffer, is of the device of the part.
BOOST_AUTO_TEST_CASE(detached_parameters_are_read_on_each_device) {
  struct Net : nn::Module<Net> {
    nn::Linear fc{3, 2};
    nn::Buffer scale = full({2}, 2);
    Tensor forward(const Tensor& x) {
      const Tensor factor = scale.detach() * 1;
      const Tensor y = fc(x) * factor + linear(x, fc.weight.detach() * 3);
      no_grad([&] { scale.detach().mul_(10); });
      return y;
    }
  };
  Net plain;
  nn::DataParallel shared(nn::clone(plain), places(3));
  const Tensor x = randn({5, 3});
  const Tensor expected = plain(x), found = shared(x.to(shared.devices()[0]));
  require_close(found.to_vector<double>(), expected.to_vector<double>(), 1e-6, 1e-6);
  expected.sum().backward();
  found.sum().backward();
  require_close(shared.module.fc.weight.grad().to_vector<double>(),
                plain.fc.weight.grad().to_vector<double>(), 1e-6, 1e-6);
  BOOST_TEST((shared.module.scale.to_vector<double>() == std::vector<double>{20, 20}));
}

BOOST_AUTO_TEST_CASE(weights_that_are_computed_learn_as_on_one_device) {
  struct Net : nn::Module<Net> {
    nn::SpectralNorm<nn::Linear> first{nn::Linear(6, 8)};
    nn::WeightNorm<nn::Linear> second{nn::Linear(8, 3)};
    Tensor forward(const Tensor& x) { return second(relu(first(x))); }
  };
  Net plain;
  plain.to(f64);
  nn::DataParallel shared(nn::clone(plain), places(3));
  optim::SGD one(plain.parameters(), 0.1), several(shared.parameters(), 0.1);
  for (int64_t batch : {7, 2}) {
    const Tensor x = randn({batch, 6}, f64);
    one.zero_grad(), several.zero_grad();
    plain(x).square().mean().backward();
    shared(x.to(shared.devices()[0])).square().mean().backward();
    one.step(), several.step();
  }
  const nn::StateDict expected = plain.state_dict(), found = shared.module.state_dict();
  for (const auto& [name, values] : expected)
    require_close(found.at(name).to_vector<double>(), values.to_vector<double>(), 1e-12, 1e-12);
}

// What is computed again reads the parameters and buffers of the part's device.
BOOST_AUTO_TEST_CASE(a_checkpoint_in_a_part_reads_frozen_parameters_and_buffers) {
  struct Part : nn::Module<Part> {
    nn::Linear first{3, 4}, frozen{4, 4};
    nn::LayerNorm norm{4};
    nn::Buffer shift{arange(0, 4)};
    Tensor forward(const Tensor& x) {
      return checkpoint([this](const Tensor& y) { return norm(frozen(tanh(first(y)))) * shift; },
                        x);
    }
  };
  manual_seed(3);
  Part plain;
  for (Tensor& p : plain.frozen.parameters()) p.requires_grad_(false);
  for (Tensor& p : plain.norm.parameters()) p.requires_grad_(false);
  nn::DataParallel wrapped(nn::clone(plain), parse_devices("cpu:0,cpu:1,cpu:2"));
  const Tensor x = randn({7, 3});
  plain(x).sum().backward();
  wrapped(x).sum().backward();
  const auto wanted = plain.first.weight.grad().to_vector<float>(),
             found = wrapped.module.first.weight.grad().to_vector<float>();
  for (size_t i = 0; i < wanted.size(); ++i) BOOST_TEST(std::abs(wanted[i] - found[i]) < 1e-5);
}

BOOST_AUTO_TEST_SUITE_END()
