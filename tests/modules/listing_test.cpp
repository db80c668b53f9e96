// What a hand-written fields() leaves out, and may leave out.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/ops/pointwise.h>
#include <tenon/modules/activation.h>
#include <tenon/modules/dropout.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/norm.h>

#include "logged.h"
#include "ops/check.h"

BOOST_AUTO_TEST_SUITE(listing_test)

using namespace tenon;
using namespace tenon::test;

namespace {
struct Forgot : nn::Module<Forgot> {
  nn::Linear fc{2, 2};
  nn::Parameter gain = ones({2});
  Tensor forward(const Tensor& x) { return fc(x) * gain; }
  void fields(nn::FieldVisitor& v) { v("fc", fc); }
};
struct ForgotTwo : nn::Module<ForgotTwo> {
  nn::Buffer mean = ones({3});
  nn::Parameter gain = ones({2});
  Tensor forward(const Tensor& x) { return x * gain; }
  void fields(nn::FieldVisitor&) {}
};
struct ForgotChild : nn::Module<ForgotChild> {
  nn::Linear fc{2, 2};
  nn::Dropout drop{0.5};
  nn::ReLU relu;
  Tensor forward(const Tensor& x) { return relu(drop(fc(x))); }
  void fields(nn::FieldVisitor& v) { v("fc", fc); }
};
struct ForgotList : nn::Module<ForgotList> {
  std::vector<nn::Linear> layers = nn::repeat(2, [] { return nn::Linear(2, 2); });
  Tensor forward(const Tensor& x) { return layers[1](layers[0](x)); }
  void fields(nn::FieldVisitor&) {}
};
struct ForgotMap : nn::Module<ForgotMap> {
  std::map<std::string, nn::Linear> layers = {{"a", nn::Linear(2, 2)}, {"b", nn::Linear(2, 2)}};
  Tensor forward(const Tensor& x) { return layers.at("b")(layers.at("a")(x)); }
  void fields(nn::FieldVisitor&) {}
};
// As ForgotList, and saved before it is ever called.
class ForgotVector : public nn::Module<ForgotVector> {
 public:
  ForgotVector() {
    for (int i = 0; i < 3; ++i) layers_.emplace_back(2, 2);
  }
  Tensor forward(const Tensor& x) { return layers_[2](layers_[1](layers_[0](x))); }
  void fields(nn::FieldVisitor& v) { v("head", head_); }

 private:
  std::string label_ = "a text between the fields";
  nn::Linear head_{2, 2};
  std::vector<nn::Linear> layers_;
};
// Its vectors need no name: one holds nothing of its own, the others what is named one by one or
// belongs to nobody's training.
class NamesElements : public nn::Module<NamesElements> {
 public:
  NamesElements() : handles_{fc_.weight, fc_.bias} {
    for (auto& p : teacher_) p.requires_grad_(false);
  }
  Tensor forward(const Tensor& x) { return fc_(x); }
  void fields(nn::FieldVisitor& v) {
    v("fc", fc_);
    for (size_t i = 0; i < layers_.size(); ++i) v("layer" + std::to_string(i), layers_[i]);
  }

 private:
  nn::Linear fc_{2, 2};
  std::vector<nn::Linear> layers_ = nn::repeat(2, [] { return nn::Linear(2, 2); });
  std::vector<nn::Parameter> handles_;
  std::vector<nn::Linear> teacher_ = nn::repeat(1, [] { return nn::Linear(2, 2); });
  nn::Parameter tied_ = fc_.weight;
};
// Passes over a parameter that is absent, which only some objects have.
struct Optional : nn::Module<Optional> {
  nn::Parameter weight = ones({2}), bias;
  bool forgets = false;
  Tensor forward(const Tensor& x) { return bias.defined() ? x * weight + bias : x * weight; }
  void fields(nn::FieldVisitor& v) {
    v("weight", weight);
    if (bias.defined() && !forgets) v("bias", bias);
  }
};
// Names everything; what it calls and does not hold belongs to another model.
struct Complete : nn::Module<Complete> {
  nn::Linear fc{2, 2};
  nn::BatchNorm1d norm{2};
  std::optional<nn::Linear> extra;
  nn::Linear* elsewhere = nullptr;
  Tensor forward(const Tensor& x) { return elsewhere ? (*elsewhere)(x) : norm(fc(x)); }
  void fields(nn::FieldVisitor& v) { v("fc", fc)("norm", norm)("extra", extra); }
};
struct Owner : nn::Module<Owner> {
  nn::Linear own{2, 2};
  Complete part;
  Tensor forward(const Tensor& x) {
    part.elsewhere = &own;
    return part(x);
  }
};

const Tensor& batch() {
  static const Tensor x = ones({3, 2});
  return x;
}

// Warned of in one line.
void once(const std::string& logged, const std::string& text) {
  BOOST_TEST((logged.find(text) != std::string::npos && logged.find('\n') == logged.size() - 1),
             logged);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_lies_in_the_module_has_to_be_named) {
  const Tensor& x = batch();
  Forgot forgot;
  const std::string text =
      "Forgot: its fields() does not name a parameter or buffer (f32 of shape (2,) at byte " +
      std::to_string(reinterpret_cast<char*>(&forgot.gain) - reinterpret_cast<char*>(&forgot)) +
      " of the object) that it holds";
  require_error<ValueError>([&] { forgot.parameters(); }, text);
  require_error<ValueError>([&] { forgot(x); }, text);
  require_error<ValueError>([&] { forgot.state_dict(); }, text);
  auto on_heap = std::make_unique<Forgot>(forgot);
  require_error<ValueError>([&] { on_heap->parameters(); }, text);
  struct Around : nn::Module<Around> {
    Forgot inner;
    Tensor forward(const Tensor& x) { return inner(x); }
  };
  Around around;
  require_error<ValueError>([&] { around.parameters(); }, text);

  ForgotTwo two;
  require_error<ValueError>([&] { two.parameters(); },
                            "ForgotTwo: its fields() does not name 2 parameters or buffers (f32 of "
                            "shape (3,) at byte ");

  // The place of a parameter is known from the start; a child without any is noticed when it is
  // called.
  ForgotChild child;
  require_error<ValueError>([&] { child(x); },
                            "ForgotChild: its fields() does not name a module of type Dropout");
}

BOOST_AUTO_TEST_CASE(a_container_that_is_not_named_is_warned_of_once) {
  const Tensor& x = batch();
  ForgotList list;
  once(logged([&] { list(x), list(x); }),
       "ForgotList holds a std::vector with 4 parameters that its fields() does not name");
  ForgotMap map;
  once(logged([&] { map(x), map(x); }),
       "ForgotMap calls a module of type Linear that its fields() does not name");

  ForgotVector vector;
  once(logged([&] {
         vector.state_dict();
         vector.parameters();
         vector(x);
         ForgotVector().parameters();
       }),
       "ForgotVector holds a std::vector with 6 parameters that its fields() does not name, so "
       "parameters(), state_dict() and "
       "save() do not have them");
}

BOOST_AUTO_TEST_CASE(absent_parameters_need_no_name) {
  const Tensor& x = batch();
  Optional optional;
  BOOST_TEST(optional.parameters().size() == 1u);
  optional.state_dict();
  optional(x);
  Optional forgetful;  // that one object lacks the parameter says nothing of another
  forgetful.bias = zeros({2}), forgetful.forgets = true;
  require_error<ValueError>([&] { forgetful.parameters(); },
                            "Optional: its fields() does not name a parameter or buffer");
  optional.bias = zeros({2});
  BOOST_TEST(optional.parameters().size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_belongs_to_others_or_is_named_elsewhere_is_no_fault) {
  const Tensor& x = batch();
  Complete complete;
  Owner owner;
  NamesElements elements;
  const std::string nothing = logged([&] {
    complete(x);
    complete.extra.emplace(2, 2);
    complete.parameters();
    std::vector<Complete> moved(3, complete);
    moved.push_back(complete);
    for (auto& m : moved) m(x), m.state_dict();
    owner(x);
    elements.state_dict();
    BOOST_TEST(elements.parameters().size() == 6u);
    elements(x);
  });
  BOOST_TEST(nothing == "", nothing);
}

BOOST_AUTO_TEST_SUITE_END()
