// Modules by name, and steps of recurrent layers.
#include <memory>
#include <utility>
#include <vector>

#include <tenon/modules/data_parallel.h>
#include <tenon/tenon.h>

#include "modules/ramp.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(containers_test)

using namespace tenon;
using namespace tenon::test;

namespace {

const TensorOptions in_f64{.dtype = f64};
const nn::WeightOptions learned{.tensor = in_f64}, without_bias{.bias = false, .tensor = in_f64};

// A body, and heads of which each call takes one.
struct Heads : nn::Module<Heads> {
  nn::Linear body{3, 4};
  nn::ModuleDict heads{
      {{"wide", nn::Linear(4, 5)}, {"act", nn::ReLU()}, {"narrow", nn::Linear(4, 1)}}};
  std::string chosen = "wide";
  Tensor forward(const Tensor& x) { return heads[chosen](heads["act"](body(x))); }
};

std::string keys_of(const nn::StateDict& dict) {
  std::string text;
  for (auto& key : dict.keys()) text += (text.empty() ? "" : " ") + key;
  return text;
}

// Many layers, which counts how often its fields are gone through.
struct Tall : nn::Module<Tall> {
  std::vector<nn::Linear> floors;
  int walks = 0;
  explicit Tall(int64_t n) {
    for (int64_t i = 0; i < n; ++i) floors.emplace_back(2, 2);
  }
  Tensor forward(Tensor x) {
    for (auto& floor : floors) x = floor(x);
    return x;
  }
  void fields(nn::FieldVisitor& v) {
    ++walks;
    v("floors", floors);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_dictionary_keeps_its_order) {
  nn::ModuleDict dict{{{"z", nn::Linear(2, 3)}, {"a", nn::ReLU()}}};
  dict.add("m", nn::Linear(3, 1));
  BOOST_TEST((dict.keys() == std::vector<std::string>{"z", "a", "m"}));
  BOOST_TEST(dict.size() == 3u);
  BOOST_TEST((dict.contains("a") && !dict.contains("b")));
  BOOST_TEST(dict["z"](zeros({1, 2})).shape().str() == "(1, 3)");
  std::string names;
  for (auto& [name, module] : dict) names += name;
  BOOST_TEST(names == "zam");
  BOOST_TEST(nn::str(dict) ==
             "ModuleDict(\n"
             "  (z): Linear(in_features=2, out_features=3, bias=True)\n"
             "  (a): ReLU()\n"
             "  (m): Linear(in_features=3, out_features=1, bias=True)\n"
             ")");
  dict["a"] = nn::Tanh();  // in its place
  BOOST_TEST((dict.keys() == std::vector<std::string>{"z", "a", "m"}));
  BOOST_TEST(dict["a"].as<nn::Tanh>());
  const auto popped = dict.pop("z");
  BOOST_TEST(popped.as<nn::Linear>());
  BOOST_TEST((dict.keys() == std::vector<std::string>{"a", "m"}));
  BOOST_TEST(keys_of(dict.state_dict()) == "m.weight m.bias");
  nn::ModuleDict three{{{"a", nn::ReLU()}, {"bc", nn::ReLU()}, {"b", nn::ReLU()}}};
  three.pop(three.begin()->first);
  BOOST_TEST(three.size() == 2u);
  dict.clear();
  BOOST_TEST(dict.size() == 0u);
  BOOST_TEST(nn::str(dict) == "ModuleDict()");
}

BOOST_AUTO_TEST_CASE(names_of_a_dictionary_that_are_refused) {
  nn::ModuleDict dict{{{"a", nn::ReLU()}}};
  require_error<IndexError>([&] { dict["b"]; },
                            "ModuleDict: there is no module \"b\"; there are: a");
  require_error<IndexError>([&] { dict.pop("b"); }, "no module \"b\"");
  require_error<ValueError>([&] { dict.add("a", nn::Tanh()); },
                            "ModuleDict: there is a module \"a\" already");
  require_error<ValueError>([&] { dict.add("a.b", nn::Tanh()); },
                            "ModuleDict: \"a.b\" cannot name a module");
  require_error<ValueError>([&] { dict.add("", nn::Tanh()); }, "\"\" cannot name a module");
  require_error<ValueError>([&] { dict.add("c", nn::AnyModule()); },
                            "ModuleDict: the module is null");
}

BOOST_AUTO_TEST_CASE(a_dictionary_belongs_to_its_model) {
  Heads net;
  BOOST_TEST(keys_of(net.state_dict()) ==
             "body.weight body.bias heads.wide.weight heads.wide.bias heads.narrow.weight "
             "heads.narrow.bias");
  net.to(f64).eval();
  BOOST_TEST(net.heads["narrow"].as<nn::Linear>()->weight.dtype() == f64);
  const Tensor x = ramp({2, 3});
  BOOST_TEST(net(x).shape().str() == "(2, 5)");
  net.chosen = "narrow";
  net(x).sum().backward();
  BOOST_TEST(net.heads["narrow"].as<nn::Linear>()->weight.grad().defined());
  BOOST_TEST(!net.heads["wide"].as<nn::Linear>()->weight.grad().defined());
  // A clone has its own modules, a copy has the same.
  Heads copy = net, apart = nn::clone(net);
  no_grad([&] { net.heads["narrow"].as<nn::Linear>()->weight.fill_(3); });
  require_equal(copy(x), net(x));
  BOOST_TEST(apart(x).to_vector<double>() != net(x).to_vector<double>());
  load_state_dict(apart, net.state_dict());
  require_equal(apart(x), net(x));
}

// Replicas read the parameters of the dictionary on both devices.
BOOST_AUTO_TEST_CASE(a_dictionary_on_several_devices) {
  Heads net;
  Heads alone = nn::clone(net);
  nn::DataParallel<Heads> model(std::move(net), {"cpu:0", "cpu:1"});
  const Tensor x = randn({6, 3});
  const Tensor y = model(x), expected = alone(x);
  require_equal(y.to(f64), expected.to(f64), 1e-6);
  square(y).sum().backward();
  square(expected).sum().backward();
  const auto found = model.parameters(), wanted = alone.parameters();
  for (size_t i = 0; i < found.size(); ++i) {
    BOOST_TEST(found[i].grad().defined() == wanted[i].grad().defined());
    if (found[i].grad().defined()) require_equal(found[i].grad(), wanted[i].grad(), 1e-5);
  }
}

Tensor twice(const Tensor& x) { return x * 2; }

BOOST_AUTO_TEST_CASE(functions_in_a_sequence) {
  nn::Sequential net(
      filled(nn::Linear(2, 4, learned)), [](const Tensor& x) { return relu(x); }, twice,
      [](Tensor x) {
        return x.reshape({-1, 2});
      });
  const Tensor x = ramp({3, 2});
  auto& linear = *net[0].as<nn::Linear>();
  const Tensor expected = (relu(linear(x)) * 2).reshape({-1, 2});
  BOOST_TEST(net(x).equal(expected));
  BOOST_TEST(nn::clone(net)(x).equal(expected));
  BOOST_TEST(net.parameters().size() == 2u);
  BOOST_TEST(nn::str(net).find("(1): Lambda()") != std::string::npos);
  nn::Sequential named({{"half", [](const Tensor& t) { return t / 2; }}});
  named.push_back("linear", nn::Linear(2, 2)).push_back(twice);
  BOOST_TEST(keys_of(named.state_dict()) == "linear.weight linear.bias");
  BOOST_TEST(named.size() == 3u);
  nn::ModuleList list(twice, nn::ReLU());
  list.push_back([](const Tensor& t) { return -t; });
  BOOST_TEST(list[2](x).equal(-x));
}

BOOST_AUTO_TEST_CASE(one_step) {
  const Tensor x = ramp({2, 2}), h = ramp({2, 3});
  require_values(filled(nn::RNNCell(2, 3, learned))(x, h), {2, 3},
                 {-0.0897578, -0.4053213, -0.6469295, -0.5580522, -0.551128, -0.5441271});
  require_values(filled(nn::RNNCell(2, 3, without_bias, "relu"))(x), {2, 3},
                 {0.41, 0.23, 0.05, 0.23, 0.13, 0.03});
  const auto lstm = filled(nn::LSTMCell(2, 3, learned));
  const auto [h1, c1] = lstm(x, h, h * 2);
  require_values(h1, {2, 3},
                 {-0.0251472, -0.0146033, -0.0080739, -0.1142329, -0.0904009, -0.0650296});
  require_values(c1, {2, 3},
                 {-0.7120867, -0.540528, -0.4000368, -0.3208303, -0.2490081, -0.1762127});
  require_values(lstm(x[0]).first, {3}, {-0.0618383, -0.0610567, -0.0601434});
  require_values(filled(nn::GRUCell(2, 3, learned))(x, h), {2, 3},
                 {-0.7749152, -0.7872422, -0.7994096, -0.3018241, -0.2642175, -0.226134});
  require_values(filled(nn::GRUCell(2, 3, without_bias))(x[1], h[1]), {3},
                 {-0.387888, -0.4144339, -0.4458687});
}

// Steps one after the other are the layer.
BOOST_AUTO_TEST_CASE(steps_are_a_layer) {
  nn::LSTM layer(3, 4, {.tensor = in_f64});
  nn::LSTMCell cell(3, 4, learned);
  cell.weight_ih = layer.weights[0], cell.weight_hh = layer.weights[1];
  cell.bias_ih = layer.weights[2], cell.bias_hh = layer.weights[3];
  const Tensor x = ramp({5, 2, 3});
  const auto [y, last, cells] = layer(x);
  Tensor h, c;
  for (int64_t t = 0; t < 5; ++t) {
    std::tie(h, c) = cell(x[t], h, c);
    require_equal(h, y[t], 1e-12);
  }
  require_equal(c, cells[0], 1e-12);
}

BOOST_AUTO_TEST_CASE(cells_have_the_names_of_pytorch) {
  nn::GRUCell cell(3, 4);
  BOOST_TEST(keys_of(cell.state_dict()) == "weight_ih weight_hh bias_ih bias_hh");
  BOOST_TEST(cell.weight_ih.shape().str() == "(12, 3)");
  BOOST_TEST(cell.weight_ih.detach().abs().max().item<double>() <= 0.5);
  BOOST_TEST(nn::str(cell) == "GRUCell(3, 4)");
  BOOST_TEST(nn::str(nn::LSTMCell(3, 4, {.bias = false})) == "LSTMCell(3, 4, bias=False)");
  BOOST_TEST(nn::str(nn::RNNCell(3, 4, {.bias = false}, "relu")) ==
             "RNNCell(3, 4, bias=False, nonlinearity=relu)");
  require_error<ValueError>([] { nn::LSTMCell(0, 4); }, "LSTMCell: input_size is 0");
  require_error<ValueError>([] { nn::RNNCell(1, 4, {}, "gelu"); }, "RNNCell: nonlinearity is");
  require_error<ShapeError>(
      [&] {
        cell(zeros({2, 5}));
      },
      "GRUCell: expected an input of shape (N, 3) or (3,), got one of shape "
      "(2, 5)");
  require_error<ShapeError>(
      [&] {
        cell(zeros({2, 3}), zeros({3, 4}));
      },
      "GRUCell: a state has shape (3, 4), but must be (2, 4)");
}

// The module has the type of one that has ended, and takes its memory.
BOOST_AUTO_TEST_CASE(a_module_in_the_place_of_another_has_a_name_of_its_own) {
  for (int i = 0; i < 50; ++i) {
    nn::Sequential body;
    for (int before = 0; before < i % 5; ++before) body.push_back(nn::Identity());
    body.push_back(nn::Linear(2, 3));
    require_error<ShapeError>(
        [&] {
          body(ones({1, 9}));
        },
        "(in module Sequential." + std::to_string(i % 5) + ")");
  }
}

// One walk finds the names of all, once, or a call would take a time that grows with the square of
// their number.
BOOST_AUTO_TEST_CASE(a_model_of_many_layers_is_not_searched_for_each_of_them) {
  const NoGrad guard;
  Tall model(1000);
  model(ones({1, 2}));
  BOOST_TEST(model.walks <= 5);
  const int walks = std::exchange(model.walks, 0);
  BOOST_TEST(walks > 0);
  for (int i = 0; i < 3; ++i) model(ones({1, 2}));
  BOOST_TEST(model.walks == 0);
  model.floors[700] = nn::Linear(3, 2);
  require_error<ShapeError>([&] { model(ones({1, 2})); }, "(in module Tall.floors.700)");
}

// A module that a model holds twice has the name under which it is met first.
BOOST_AUTO_TEST_CASE(a_module_in_two_places_has_its_first_name) {
  const auto shared = std::make_shared<nn::Linear>(2, 3);
  struct Both : nn::Module<Both> {
    nn::ReLU other;
    std::vector<std::shared_ptr<nn::Linear>> list;
    std::shared_ptr<nn::Linear> direct;
    Tensor forward(const Tensor& x) { return (*direct)(other(x)); }
    void fields(nn::FieldVisitor& v) { v("other", other)("list", list)("direct", direct); }
  };
  Both both;
  both.list = {std::make_shared<nn::Linear>(2, 2), shared};
  both.direct = shared;
  require_error<ShapeError>([&] { both(ones({1, 9})); }, "(in module Both.list.1)");
}

BOOST_AUTO_TEST_SUITE_END()
