// What of a struct is found, and under which name.
#include <any>
#include <functional>
#include <map>
#include <variant>

#include <tenon/core/ops/pointwise.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/sequential.h>

#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(reflect_test)

using namespace tenon;

namespace {

std::string names(nn::ModuleRef module) {
  std::string text;
  for (auto& [name, tensor] : nn::named_parameters(module))
    text += (text.empty() ? "" : " ") + name;
  return text;
}

struct Block : nn::Module<Block> {
  nn::Linear fc{2, 2};
  nn::Parameter gain = ones({2});
  Tensor forward(const Tensor& x) { return fc(x) * gain; }
};

// Every other kind of field, to be passed over; several convert from nearly anything, which makes
// them hard to count.
struct Crowded : nn::Module<Crowded> {
  int number = 3;
  std::string text = "text";
  const char* literal = nullptr;
  nn::Linear first{2, 2, {.bias = false}};
  std::function<Tensor(const Tensor&)> function;
  std::any any;
  std::optional<int> maybe;
  std::variant<int, double> either;
  std::map<std::string, int> table;
  std::vector<double> numbers = {1, 2};
  std::unique_ptr<int> pointer;
  Device device;
  Tensor plain = ones({3});
  const nn::Linear last{2, 1, {.bias = false}};
  enum class Kind { a, b } kind = Kind::b;
  bool flag = true;
};

// As many fields as are allowed.
struct Wide : nn::Module<Wide> {
  int a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7, c0, c1, c2, c3, c4, c5, c6,
      c7, d0, d1, d2, d3, d4, d5, d6, d7, e0, e1, e2, e3, e4, e5, e6, e7, f0, f1, f2, f3, f4, f5,
      f6, f7, g0, g1, g2, g3, g4, g5, g6, g7, h0, h1, h2, h3, h4, h5, h6;
  nn::Parameter last = ones({1});
};

// A class with private fields names them itself.
class Closed : public nn::Module<Closed> {
 public:
  explicit Closed(int64_t size) : weight_(ones({size})), layer_(size, 1) {}
  void fields(nn::FieldVisitor& v) { v("weight", weight_)("layer", layer_)("training", training_); }
  bool training() const { return training_; }

 private:
  nn::Parameter weight_;
  nn::Linear layer_;
  bool training_ = true;
};

template <class Inner>
struct Around : nn::Module<Around<Inner>> {
  Inner inner;
};

struct NoDefault : nn::Module<NoDefault> {
  nn::Linear given;
  nn::Parameter scale = ones({1});
};

struct Empty : nn::Module<Empty> {};

}  // namespace

BOOST_AUTO_TEST_CASE(children_and_parameters_go_by_their_field_names) {
  struct Net : nn::Module<Net> {
    Block body;
    nn::Parameter scale = ones({1});
    nn::Linear head{2, 1};
  };
  Net net;
  BOOST_TEST(names(net) == "scale body.gain body.fc.weight body.fc.bias head.weight head.bias");
  BOOST_TEST(nn::ModuleRef(net).type->name == "Net");
}

BOOST_AUTO_TEST_CASE(other_fields_are_passed_over) {
  Crowded net;
  BOOST_TEST(names(net) == "first.weight last.weight");
}

BOOST_AUTO_TEST_CASE(up_to_sixty_four_fields) {
  Wide wide{};
  BOOST_TEST(names(wide) == "last");
  Empty empty;
  BOOST_TEST(names(empty) == "");
  BOOST_TEST(nn::str(empty) == "Empty()");
}

BOOST_AUTO_TEST_CASE(a_field_without_a_default) {
  NoDefault net{{}, nn::Linear(2, 2, {.bias = false})};
  BOOST_TEST(names(net) == "scale given.weight");
}

BOOST_AUTO_TEST_CASE(containers_number_their_modules) {
  struct Net : nn::Module<Net> {
    std::vector<Block> blocks;
    std::array<nn::Linear, 2> pair{nn::Linear(1, 1, {.bias = false}),
                                   nn::Linear(1, 1, {.bias = false})};
    std::optional<nn::Linear> maybe;
    std::unique_ptr<nn::Linear> owned;
    std::shared_ptr<nn::Linear> shared;
    std::map<std::string, nn::Linear> by_name;
    std::vector<std::unique_ptr<nn::Linear>> rows;
    std::vector<nn::Parameter> scales;
    std::optional<nn::Parameter> shift;
  };
  Net net;
  BOOST_TEST(names(net) == "pair.0.weight pair.1.weight");
  nn::Linear small(1, 1, {.bias = false});
  net.blocks.resize(2);
  net.maybe = small;
  net.owned = std::make_unique<nn::Linear>(1, 1, nn::WeightOptions{.bias = false});
  net.shared = std::make_shared<nn::Linear>(1, 1, nn::WeightOptions{.bias = false});
  net.by_name.emplace("left", nn::Linear(1, 1, {.bias = false}));
  net.rows.push_back(std::make_unique<nn::Linear>(1, 1, nn::WeightOptions{.bias = false}));
  net.rows.push_back(nullptr);
  net.scales.push_back(ones({1}));
  net.shift = ones({1});
  BOOST_TEST(names(net) ==
             "shift blocks.0.gain blocks.0.fc.weight blocks.0.fc.bias blocks.1.gain "
             "blocks.1.fc.weight blocks.1.fc.bias "
             "pair.0.weight pair.1.weight "
             "maybe.weight owned.weight shared.weight by_name.left.weight rows.0.weight scales.0");
}

namespace {
// C++ says of a vector or a map of anything that it can be copied.
struct Layers : nn::Module<Layers> {
  std::vector<std::unique_ptr<nn::Linear>> layers;
  Tensor forward(const Tensor& x) { return (*layers[0])(x); }
};
struct Nested : nn::Module<Nested> {
  Layers part;
  std::vector<Layers> parts;
};
struct ByName : nn::Module<ByName> {
  std::map<std::string, std::unique_ptr<nn::Linear>> layers;
};
struct Constructed : nn::Module<Constructed> {
  static constexpr int num_fields = 1;
  std::vector<std::unique_ptr<nn::Linear>> layers;
  Constructed() { layers.push_back(std::make_unique<nn::Linear>(2, 2)); }
  Tensor forward(const Tensor& x) { return (*layers[0])(x); }
};
struct Tree : nn::Module<Tree> {
  nn::Linear fc{1, 1, {.bias = false}};
  std::vector<Tree> children;
};
}  // namespace

BOOST_AUTO_TEST_CASE(what_cannot_be_copied_may_stand_in_containers) {
  Layers net;
  net.layers.push_back(std::make_unique<nn::Linear>(2, 2));
  BOOST_TEST(names(net) == "layers.0.weight layers.0.bias");
  Nested nested;
  nested.parts.push_back(std::move(net));
  BOOST_TEST(names(nested) == "parts.0.layers.0.weight parts.0.layers.0.bias");
  BOOST_TEST(names(ByName()) == "");
  nn::Sequential sequential(Constructed(), nn::Linear(2, 1, {.bias = false}));
  BOOST_TEST(names(sequential) == "0.layers.0.weight 0.layers.0.bias 1.weight");
  test::require_error<ValueError>([&] { nn::clone(sequential); },
                                  "clone: Constructed has no copy constructor");
  Tree tree;  // holds itself
  tree.children.emplace_back();
  BOOST_TEST(names(nn::clone(tree)) == "fc.weight children.0.fc.weight");
}

BOOST_AUTO_TEST_CASE(a_child_assigned_anew_is_found) {
  struct Net : nn::Module<Net> {
    nn::Linear head{2, 1};
    nn::Parameter scale = ones({1});
  };
  Net net;
  net.head = nn::Linear(2, 5, {.bias = false});
  net.scale = zeros({7});
  auto found = net.named_parameters();
  BOOST_TEST_REQUIRE(found.size() == 2u);
  BOOST_TEST(found[0].tensor.shape() == (Shape{7}));
  BOOST_TEST(found[0].tensor.requires_grad());
  BOOST_TEST(found[1].name == "head.weight");
  BOOST_TEST(found[1].tensor.shape() == (Shape{5, 2}));
  BOOST_TEST(found[1].tensor.is_same(net.head.weight));
}

BOOST_AUTO_TEST_CASE(a_class_names_its_private_fields) {
  Closed net(3);
  BOOST_TEST(names(net) == "weight layer.weight layer.bias");
  net.eval();
  BOOST_TEST(!net.training());
}

BOOST_AUTO_TEST_CASE(templates_lose_their_arguments_in_print) {
  Around<Around<Block>> net;
  BOOST_TEST(names(net) == "inner.inner.gain inner.inner.fc.weight inner.inner.fc.bias");
  BOOST_TEST(std::string(nn::ModuleRef(net).type->name) == "Around");
}

BOOST_AUTO_TEST_CASE(modules_know_their_type) {
  Block block;
  nn::ModuleRef ref(block);
  BOOST_TEST(ref.as<Block>() == &block);
  BOOST_TEST(ref.as<nn::Linear>() == nullptr);
  auto children = block.named_children();
  BOOST_TEST_REQUIRE(children.size() == 1u);
  BOOST_TEST(children[0].module.as<nn::Linear>() == &block.fc);
}

BOOST_AUTO_TEST_SUITE_END()
