// Optimizers step by step against PyTorch's, and what they refuse.
#include <hdf5.h>
#include <nlohmann/json.hpp>

#include <tenon/core/tensor_impl.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/optim/adam.h>
#include <tenon/modules/optim/sgd.h>

#include "modules/stepped.h"
#include "ops/check.h"
#include "places.h"

BOOST_AUTO_TEST_SUITE(optim_test)

using namespace tenon;
using namespace tenon::test;
using nlohmann::json;

namespace {

struct Case {
  std::string op;
  json args;
  Tensor param, grads, steps;
};

Tensor read_tensor(hid_t group, const char* name) {
  hid_t set = H5Dopen2(group, name, H5P_DEFAULT), space = H5Dget_space(set);
  hsize_t dims[Shape::max_rank];
  int rank = H5Sget_simple_extent_dims(space, dims, nullptr);
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(static_cast<int64_t>(dims[i]));
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Sclose(space);
  H5Dclose(set);
  return doubles(values, shape);
}

std::string read_text(hid_t group, const char* name) {
  hid_t attribute = H5Aopen(group, name, H5P_DEFAULT), type = H5Aget_type(attribute);
  char* text = nullptr;
  H5Aread(attribute, type, &text);
  std::string result(text);
  H5free_memory(text);
  H5Tclose(type);
  H5Aclose(attribute);
  return result;
}

std::vector<Case> reference_cases() {
  hid_t file = H5Fopen((reference_dir() + "/cases/optim.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  BOOST_REQUIRE(file >= 0);
  H5G_info_t info;
  H5Gget_info(file, &info);
  std::vector<Case> cases;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[64];
    H5Lget_name_by_idx(file, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name, H5P_DEFAULT);
    hid_t group = H5Gopen2(file, name, H5P_DEFAULT);
    cases.push_back({read_text(group, "op"), json::parse(read_text(group, "args")),
                     read_tensor(group, "param"), read_tensor(group, "grads"),
                     read_tensor(group, "steps")});
    H5Gclose(group);
  }
  H5Fclose(file);
  return cases;
}

template <class Options>
Options adam_options(const json& args) {
  Options o;
  o.lr = args.value("lr", o.lr);
  o.eps = args.value("eps", o.eps);
  o.betas = args.value("betas", o.betas);
  o.weight_decay = args.value("weight_decay", o.weight_decay);
  o.amsgrad = args.value("amsgrad", o.amsgrad);
  o.maximize = args.value("maximize", o.maximize);
  return o;
}

std::unique_ptr<optim::Optimizer> make(const std::string& op, const json& args,
                                       std::vector<Tensor> params) {
  if (op == "Adam")
    return std::make_unique<optim::Adam>(std::move(params), adam_options<optim::AdamOptions>(args));
  if (op == "AdamW")
    return std::make_unique<optim::AdamW>(std::move(params),
                                          adam_options<optim::AdamWOptions>(args));
  if (op != "SGD") return nullptr;
  optim::SGDOptions o;
  o.lr = args.value("lr", o.lr);
  o.momentum = args.value("momentum", o.momentum);
  o.dampening = args.value("dampening", o.dampening);
  o.weight_decay = args.value("weight_decay", o.weight_decay);
  o.nesterov = args.value("nesterov", o.nesterov);
  o.maximize = args.value("maximize", o.maximize);
  return std::make_unique<optim::SGD>(std::move(params), o);
}

}  // namespace

BOOST_AUTO_TEST_CASE(steps_are_pytorchs) {
  int ran = 0;
  for (auto& c : reference_cases()) {
    Tensor param = leaf(c.param);
    auto opt = make(c.op, c.args, {param});
    if (!opt) continue;  // an optimizer that is not there
    ++ran;
    for (int64_t i = 0; i < c.grads.size(0); ++i) {
      step_with(*opt, param, c.grads[i]);
      require_close(param.to_vector<double>(), c.steps[i].to_vector<double>(), 1e-6, 1e-7,
                    c.op + c.args.dump() + " step " + std::to_string(i));
    }
  }
  BOOST_TEST(ran >= 16);
}

// A layer's weight as a view of another tensor: what is trained is that memory.
BOOST_AUTO_TEST_CASE(parameters_that_are_not_contiguous_train) {
  for (const char* op : {"SGD", "Adam", "AdamW"})
    for (int way = 0; way < 3; ++way) {
      Tensor whole = sample({6, 8}).to(f32);
      Tensor view = way == 0   ? whole.t()
                    : way == 1 ? whole.slice(1, 0, 8, 2).t()
                               : whole.narrow(1, 1, 4).t();
      nn::Parameter weight(view), twin(view.clone());
      Tensor x = sample({5, view.size(0)}, 0.4).to(f32);
      auto opt = make(op, {{"lr", 0.002}, {"momentum", 0.9}, {"weight_decay", 0.01}}, {weight});
      auto same = make(op, {{"lr", 0.002}, {"momentum", 0.9}, {"weight_decay", 0.01}}, {twin});
      double loss = 0, before = 0;
      for (int i = 0; i < 5; ++i) {
        weight.set_grad({});
        Tensor y = square(x.matmul(weight)).sum();
        y.backward();
        twin.set_grad(weight.grad().clone());
        loss = y.item();
        if (i == 0) before = loss;
        const uint64_t version = weight.version();
        opt->step();
        same->step();
        BOOST_TEST(weight.version() > version);
        BOOST_TEST(weight.to_vector<float>() == twin.to_vector<float>(),
                   op << " step " << i << ", way " << way);
      }
      BOOST_TEST(loss < before);
      BOOST_TEST(view.to_vector<float>() == twin.to_vector<float>());
    }
}

BOOST_AUTO_TEST_CASE(in_float32_too) {
  for (auto& c : reference_cases()) {
    Tensor param = leaf(c.param.to(f32));
    auto opt = make(c.op, c.args, {param});
    if (!opt) continue;
    for (int64_t i = 0; i < c.grads.size(0); ++i) step_with(*opt, param, c.grads[i].to(f32));
    require_close(param.to_vector<double>(), c.steps[c.steps.size(0) - 1].to_vector<double>(), 1e-4,
                  1e-5, c.op + c.args.dump());
  }
}

BOOST_AUTO_TEST_CASE(groups_have_options_of_their_own) {
  Tensor a = leaf(doubles({1}, {1})), b = leaf(doubles({1}, {1}));
  optim::SGD opt({{{a}, {.lr = 0.5}}, {{b}, {.lr = 0.25, .weight_decay = 2}}});
  BOOST_TEST(opt.num_groups() == 2u);
  a.set_grad(doubles({1}, {1}));
  b.set_grad(doubles({1}, {1}));
  opt.step();
  require_values(a.detach(), {1}, {0.5});
  require_values(b.detach(), {1}, {1 - 0.25 * 3});
  opt.set_lr(0.125, 1);
  BOOST_TEST(opt.lr(0) == 0.5);
  BOOST_TEST(opt.lr(1) == 0.125);
  opt.options(0).lr = 2;
  BOOST_TEST(opt.lr() == 2);
  require_error<ValueError>([&] { opt.set_lr(-1); },
                            "SGD: lr is -1; it has to be finite and at least 0");
}

BOOST_AUTO_TEST_CASE(parameters_without_gradient_stay) {
  Tensor a = leaf(doubles({1}, {1})), b = leaf(doubles({1}, {1}));
  optim::SGD opt({a, b}, {.lr = 1, .momentum = 0.5, .dampening = 0.5});
  step_with(opt, a, doubles({1}, {1}));
  require_values(a.detach(), {1}, {0});
  require_values(b.detach(), {1}, {1});
  // b's first gradient comes later, and fills its momentum undampened all the same.
  step_with(opt, b, doubles({1}, {1}));
  require_values(a.detach(), {1}, {-1});
  require_values(b.detach(), {1}, {0});
  opt.zero_grad();
  BOOST_TEST(!a.grad().defined());
  a.set_grad(doubles({3}, {1}));
  opt.zero_grad(false);
  require_values(a.grad(), {1}, {0});
}

BOOST_AUTO_TEST_CASE(mixed_types_and_devices) {
  std::vector<Tensor> params = {leaf(ones({2})), leaf(ones({2}, {.dtype = f64})),
                                leaf(ones({2}, {.device = "cpu:1"})), leaf(ones({0}))};
  optim::AdamW opt(params, {.lr = 0.1});
  for (int i = 0; i < 2; ++i) {
    for (auto& p : params) p.set_grad(ones_like(p));
    opt.step();
  }
  require_close(params[0].to_vector<double>(), params[1].to_vector<double>(), 1e-5, 1e-6);
  require_close(params[2].to_vector<double>(), params[1].to_vector<double>(), 1e-5, 1e-6);
  BOOST_TEST(params[2].device().str() == "cpu:1");
}

BOOST_AUTO_TEST_CASE(state_can_be_saved_and_taken_up_again) {
  auto cases = reference_cases();
  for (auto& c : cases) {
    Tensor first = leaf(c.param);
    auto before = make(c.op, c.args, {first});
    if (!before) continue;
    for (int64_t i = 0; i < 3; ++i) step_with(*before, first, c.grads[i]);
    auto state = before->state_dict();
    Tensor second = leaf(first.detach());
    auto after =
        make(c.op, {{"lr", 123.0}, {"momentum", 0.9}, {"amsgrad", c.args.value("amsgrad", false)}},
             {second});
    after->load_state_dict(state);
    BOOST_TEST(after->lr() == before->lr());
    for (int64_t i = 3; i < 6; ++i) {
      step_with(*before, first, c.grads[i]);
      step_with(*after, second, c.grads[i]);
    }
    require_equal(second.detach(), first.detach());
  }
}

// A step that throws is as if it had not been asked for: no step is counted, and no state is begun.
BOOST_AUTO_TEST_CASE(a_failed_step_does_not_count) {
  for (const char* op : {"Adam", "AdamW", "SGD"}) {
    const json args = {{"lr", 0.1}, {"momentum", 0.9}, {"dampening", 0.5}, {"amsgrad", true}};
    Tensor bad = ones({2, 1}).expand({2, 3}).detach().requires_grad_(), good = leaf(ones({2, 3}));
    auto opt = make(op, args, {bad});
    bad.set_grad(ones({2, 3}));
    for (int i = 0; i < 3; ++i) require_error<ValueError>([&] { opt->step(); }, "changed in place");
    auto state = opt->state_dict();
    BOOST_TEST(state.tensors.size() == 0u);
    for (auto& [key, value] : state.numbers) BOOST_TEST(key.find(".step") == std::string::npos);
    // And the first step that succeeds is the first.
    bad.set_grad({});
    set_data(bad, good.detach().clone());
    auto fresh = make(op, args, {good});
    for (int i = 0; i < 2; ++i) {
      step_with(*opt, bad, sample({2, 3}).to(f32));
      step_with(*fresh, good, sample({2, 3}).to(f32));
    }
    require_equal(bad.detach(), good.detach());
  }
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Tensor p = leaf(ones({2}));
  require_error<ValueError>([] { optim::SGD(std::vector<Tensor>{}); },
                            "SGD: got an empty list of parameters");
  require_error<ValueError>(
      [&] {
        optim::Adam({p, p});
      },
      "Adam: the parameter of shape (2,) is given twice");
  require_error<ValueError>([&] { optim::AdamW({p * 2}); },
                            "AdamW: the parameter of shape (2,) is the result of an operator");
  require_error<ValueError>(
      [&] {
        optim::SGD({p, Tensor()});
      },
      "a parameter is an undefined tensor");
  require_error<DTypeError>([] { optim::SGD({ones({2}, {.dtype = i64})}); },
                            "is of type i64; it has to be floating");
  require_error<ValueError>([&] { optim::SGD({p}, {.lr = -0.5}); },
                            "SGD: lr is -0.5; it has to be finite and at least 0");
  require_error<ValueError>([&] { optim::SGD({p}, {.nesterov = true}); },
                            "SGD: momentum is 0; it has to be above 0 for nesterov");
  require_error<ValueError>(
      [&] {
        optim::Adam({p}, {.betas = {0.9, 1}});
      },
      "Adam: betas[1] is 1; it has to be at least 0 and below 1");
  require_error<ValueError>([&] { optim::AdamW({p}, {.eps = -1}); }, "AdamW: eps is -1");
}

BOOST_AUTO_TEST_CASE(a_step_holds_no_gradient_until_the_next) {
  const Device device = default_device();
  Tensor weight = ones({100, 100}).requires_grad_();
  optim::SGD sgd({weight}, {.lr = 0.1, .momentum = 0.9});
  optim::Adam adam({weight});
  for (optim::Optimizer* optimizer :
       {static_cast<optim::Optimizer*>(&sgd), static_cast<optim::Optimizer*>(&adam)}) {
    for (int i = 0; i < 2; ++i) {
      weight.square().sum().backward();
      optimizer->step();
      synchronize();
      const auto held = memory_stats(device).allocated;
      optimizer->zero_grad();
      BOOST_TEST(memory_stats(device).allocated + 100 * 100 * 4 <= held);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
