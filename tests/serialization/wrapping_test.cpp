// A checkpoint loads whether the model is wrapped or not, on either side.
#include <boost/test/unit_test.hpp>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/tensor.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/norm.h>
#include <tenon/serialization/checkpoint.h>

#include "../files.h"
#include "support/state_values.h"

BOOST_AUTO_TEST_SUITE(wrapping_test)

using namespace tenon;
using test::state_values;

namespace {

struct Body : nn::Module<Body> {
  nn::Linear fc1{4, 3};
  nn::BatchNorm1d norm{3};
};
struct Net : nn::Module<Net> {
  Body body;
  nn::Linear head{3, 2};
};
// The same model with only its body on several devices.
struct NestedNet : nn::Module<NestedNet> {
  nn::DataParallel<Body> body{Body(), {"cpu:0", "cpu:1"}};
  nn::Linear head{3, 2};
};
// A layer that is really called "module".
struct Odd : nn::Module<Odd> {
  nn::Linear module{2, 2};
  nn::Linear head{2, 3};
};

const std::vector<Device> two = {"cpu:0", "cpu:1"};

// Values that name their tensor and place, so that none can pass for another.
void number(nn::ModuleRef model) {
  double tensor = 0;
  for (const nn::StateEntry& entry : nn::state_entries(model)) {
    const int64_t n = entry.tensor.numel();
    const Tensor values = arange(0, static_cast<double>(n)).reshape(entry.tensor.shape());
    no_grad([&] { Tensor(entry.tensor).copy_(values + 100 * ++tensor); });
  }
}
void clear(nn::ModuleRef model) {
  for (const nn::StateEntry& entry : nn::state_entries(model))
    no_grad([&] { Tensor(entry.tensor).fill_(-1); });
}
// In a file of HDF5 or of safetensors, or in several files of which none has more than one tensor.
struct Form {
  const char* name = "model.h5";
  SaveOptions options = {};
};
const std::vector<Form> kForms = {{}, {"model.safetensors"}, {"model.h5", {.max_shard_size = 1}}};

template <class Saved, class Loaded>
LoadReport save_and_load(const Saved& saved, const Loaded& loaded, const LoadOptions& options = {},
                         const Form& form = {}) {
  TempFolder folder;
  save(folder / form.name, saved, form.options);
  return load(folder / form.name, loaded, options);
}

nn::DataParallel<Net> wrapped_net() { return {Net(), two}; }
nn::DataParallel<nn::DataParallel<Net>> twice_wrapped_net() { return {wrapped_net(), two}; }
nn::DataParallel<NestedNet> wrapped_nested_net() { return {NestedNet(), two}; }

}  // namespace

BOOST_AUTO_TEST_CASE(save_plain_load_wrapped) {
  nn::Linear plain(3, 2);
  nn::DataParallel wrapped(nn::Linear(3, 2), two);
  number(plain), clear(wrapped);
  const LoadReport report = save_and_load(plain, wrapped);
  BOOST_TEST((state_values(wrapped) == state_values(plain)));
  BOOST_TEST(report.complete());
  BOOST_TEST(report.renamed.size() == 2u);
  BOOST_TEST(report.renamed[0].from == "weight");
  BOOST_TEST(report.renamed[0].to == "module.weight");
}

BOOST_AUTO_TEST_CASE(save_wrapped_load_plain) {
  nn::DataParallel wrapped(nn::Linear(3, 2), two);
  nn::Linear plain(3, 2);
  number(wrapped), clear(plain);
  const LoadReport report = save_and_load(wrapped, plain);
  BOOST_TEST((state_values(plain) == state_values(wrapped)));
  BOOST_TEST(report.matched.empty());
  BOOST_TEST(report.str() ==
             "loaded 2 of 2 tensors\n  renamed: module.weight -> weight, module.bias -> bias");
}

BOOST_AUTO_TEST_CASE(save_wrapped_load_plain_by_exact_names_fails_as_in_pytorch) {
  nn::DataParallel wrapped(nn::Linear(3, 2), two);
  nn::Linear plain(3, 2);
  clear(plain);
  const auto before = state_values(plain);
  const std::string text =
      error_of<StateDictError>([&] { save_and_load(wrapped, plain, {.prefix = Prefix::exact}); });
  BOOST_TEST(text.starts_with(
      "Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: \"weight\", "
      "\"bias\". "
      "\n\tUnexpected key(s) in state_dict: \"module.weight\", \"module.bias\". "));
  BOOST_TEST(has(text, "\"module.weight\" for \"weight\""));
  BOOST_TEST(has(text, "Prefix::automatic"));
  BOOST_TEST((state_values(plain) == before));
}

BOOST_AUTO_TEST_CASE(save_the_inner_module_of_a_wrapped_model) {
  nn::DataParallel wrapped(nn::Linear(3, 2), two);
  nn::Linear plain(3, 2);
  number(wrapped), clear(plain);
  const LoadReport report = save_and_load(wrapped.module, plain, {.prefix = Prefix::exact});
  BOOST_TEST((state_values(plain) == state_values(wrapped)));
  BOOST_TEST(report.matched.size() == 2u);
}

BOOST_AUTO_TEST_CASE(wrap_then_load) {
  nn::Linear saved(3, 2);
  number(saved);
  nn::DataParallel wrapped(nn::Linear(3, 2), two);
  const Tensor x = ones({5, 3});
  wrapped(x);  // replicas hold the values of before
  save_and_load(saved, wrapped);
  BOOST_TEST((state_values(wrapped) == state_values(saved)));
  BOOST_TEST((wrapped(x).template to_vector<double>() == saved(x).to_vector<double>()));
}

template <class Saved, class Loaded>
void check_all_values(const char* from, Saved saved, const char* to, Loaded loaded) {
  for (const Form& form : kForms)
    BOOST_TEST_CONTEXT("saved " << from << " as " << form.name << ", loaded " << to) {
      number(saved), clear(loaded);
      const LoadReport report = save_and_load(saved, loaded, {}, form);
      BOOST_TEST(report.complete());
      BOOST_TEST(report.loaded() == 9u);  // 2 weights, 2 biases, 5 of the normalization
      BOOST_TEST((state_values(loaded) == state_values(saved)));
    }
}
template <class Saved>
void check_into_all(const char* from, Saved&& make) {
  check_all_values(from, make(), "plain", Net());
  check_all_values(from, make(), "wrapped", wrapped_net());
  check_all_values(from, make(), "nested", NestedNet());
  check_all_values(from, make(), "wrapped twice", twice_wrapped_net());
  check_all_values(from, make(), "wrapped with a nested one", wrapped_nested_net());
}

// Files of h5py and of torch, plain and wrapped, are loaded in foreign_hdf5_test.cpp and
// torch_file_test.cpp.
BOOST_AUTO_TEST_CASE(every_combination_of_plain_wrapped_nested_and_wrapped_twice) {
  check_into_all("plain", [] { return Net(); });
  check_into_all("wrapped", wrapped_net);
  check_into_all("nested", [] { return NestedNet(); });
  check_into_all("wrapped twice", twice_wrapped_net);
  check_into_all("wrapped with a nested one", wrapped_nested_net);
}

BOOST_AUTO_TEST_CASE(state_dicts_in_memory_are_resolved_the_same_way) {
  auto wrapped = twice_wrapped_net();
  NestedNet nested;
  number(wrapped), clear(nested);
  const LoadReport report = load_state_dict(nested, wrapped.state_dict());
  BOOST_TEST((state_values(nested) == state_values(wrapped)));
  BOOST_TEST(report.renamed.size() == 9u);
}

BOOST_AUTO_TEST_CASE(a_layer_named_module_survives) {
  Odd plain;
  number(plain);
  BOOST_TEST((plain.state_dict().keys() == std::vector<std::string>{"module.weight", "module.bias",
                                                                    "head.weight", "head.bias"}));
  Odd again;
  clear(again);
  BOOST_TEST(save_and_load(plain, again).matched.size() == 4u);
  BOOST_TEST((state_values(again) == state_values(plain)));

  nn::DataParallel wrapped(Odd(), two);
  clear(wrapped);
  LoadReport report = save_and_load(plain, wrapped);
  BOOST_TEST((state_values(wrapped) == state_values(plain)));
  BOOST_TEST(report.renamed[0].to == "module.module.weight");

  clear(again);
  report = save_and_load(wrapped, again);
  BOOST_TEST((state_values(again) == state_values(plain)));
  BOOST_TEST(report.renamed[0].to == "module.weight");

  nn::DataParallel twice(nn::DataParallel(Odd(), two), two);
  clear(twice);
  save_and_load(again, twice);
  BOOST_TEST((state_values(twice) == state_values(plain)));
}

BOOST_AUTO_TEST_CASE(a_failed_load_leaves_the_model_as_it_was) {
  TempFolder folder;
  nn::Linear other(3, 5);
  save(folder / "other.h5", other);
  save(folder / "half.h5", nn::StateDict{{"weight", ones({2, 3})}});
  nn::Linear model(3, 2);
  number(model);
  const auto before = state_values(model);
  const std::string text = error_of<StateDictError>([&] { load(folder / "other.h5", model); });
  BOOST_TEST(
      text.starts_with("Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight: "
                       "copying a param with shape (5, 3) from "
                       "checkpoint, the shape in current model is (2, 3)."
                       "\n\tsize mismatch for bias: copying a param with shape (5,) from "
                       "checkpoint, the shape in current model is (2,)."));
  BOOST_TEST(error_of<StateDictError>([&] {
               load(folder / "other.h5", model, {.strict = false});
             }).starts_with("Error(s) in loading"));
  BOOST_TEST(has(error_of<StateDictError>([&] { load(folder / "half.h5", model); }),
                 "Missing key(s) in state_dict: \"bias\". "));
  BOOST_TEST((state_values(model) == before));

  const LoadReport report = load(folder / "half.h5", model, {.strict = false});
  BOOST_TEST((report.missing == std::vector<std::string>{"bias"}));
  BOOST_TEST((state_values(model)[0] == std::vector<double>(6, 1)));
  BOOST_TEST((state_values(model)[1] == before[1]));
}

// Which of two values would win depends on the order of names alone.
BOOST_AUTO_TEST_CASE(contradictory_values_for_one_tensor_are_refused) {
  struct Stack : nn::Module<Stack> {
    std::vector<nn::Linear> layers;
  };
  Stack apart{{}, nn::repeat(3, [] { return nn::Linear(2, 2); })};
  Stack tied{{}, std::vector<nn::Linear>(3, nn::Linear(2, 2))};
  number(apart);
  number(tied);
  const auto before = state_values(tied);
  const std::string expected =
      "Error(s) in loading state_dict for Stack:\n\t\"layers.0.weight\" and \"layers.1.weight\" "
      "are one tensor in the model, but "
      "different values were given for them";
  BOOST_TEST(error_of<StateDictError>([&] { save_and_load(apart, tied); }).starts_with(expected));
  BOOST_TEST(error_of<StateDictError>([&] {
               load_state_dict(tied, apart.state_dict());
             }).starts_with(expected));
  BOOST_TEST(error_of<StateDictError>([&] {
               save_and_load(apart, tied, {.strict = false});
             }).starts_with(expected));
  BOOST_TEST((state_values(tied) == before));

  Stack other{{}, std::vector<nn::Linear>(3, nn::Linear(2, 2))};
  const LoadReport report = save_and_load(tied, other);
  BOOST_TEST((state_values(other) == before));
  BOOST_TEST(report.tied.size() == 4u);
  BOOST_TEST(report.tied[0].key == "layers.1.weight");
  BOOST_TEST(report.tied[0].with == "layers.0.weight");
  BOOST_TEST(has(report.str(), "one tensor under two names: layers.1.weight is layers.0.weight, "));
  BOOST_TEST(save_and_load(apart, apart).tied.empty());

  // Two handles on the same values are one tensor as well.
  Stack views = apart;
  views.layers[1].weight = nn::Parameter(views.layers[0].weight);
  BOOST_TEST(error_of<StateDictError>([&] {
               save_and_load(nn::clone(apart), views);
             }).starts_with(expected));
}

BOOST_AUTO_TEST_CASE(contradictory_values_for_views_of_one_memory_are_refused) {
  struct Autoencoder : nn::Module<Autoencoder> {
    nn::Parameter encoder{arange(0, 6).to(f32).reshape({2, 3})};
    nn::Parameter decoder{encoder.detach().t()};
    nn::Parameter row{encoder.detach()[1]};
  };
  Autoencoder model;
  const auto before = state_values(model);
  const Tensor fresh = arange(10, 16).to(f32).reshape({2, 3});
  auto with = [&](const Tensor& decoder, const Tensor& row) {
    return nn::StateDict{{"encoder", fresh}, {"decoder", decoder}, {"row", row}};
  };
  for (auto [name, dict] : {std::pair("decoder", with(fresh.t() + 1, fresh[1])),
                            std::pair("row", with(fresh.t(), fresh[0]))}) {
    const std::string text =
        error_of<StateDictError>([&, dict = dict] { load_state_dict(model, dict); });
    BOOST_TEST(has(text, " in the model, but different values were given for them"), text);
    BOOST_TEST(has(text, "\"" + std::string(name) + "\" share memory"), text);
    BOOST_TEST((state_values(model) == before));
  }
  load_state_dict(model, with(fresh.t(), fresh[1]));
  BOOST_TEST((model.encoder.to_vector<float>() == fresh.to_vector<float>()));
  BOOST_TEST((model.row.to_vector<float>() == fresh[1].to_vector<float>()));
}

BOOST_AUTO_TEST_CASE(values_are_cast_to_the_models_type_and_the_report_says_so) {
  nn::Linear model(1, 2);
  const LoadReport report =
      load_state_dict(model, {{"weight", tensor({1.5f, 2.5f}, {2, 1}).to(f64)},
                              {"bias", tensor(std::vector<int64_t>{3, 4})}});
  BOOST_TEST((state_values(model) == std::vector<std::vector<double>>{{1.5, 2.5}, {3, 4}}));
  BOOST_TEST((model.weight.dtype() == f32));
  BOOST_TEST(has(report.str(), "cast: weight from f64 to f32, bias from i64 to f32"));
}

BOOST_AUTO_TEST_CASE(a_state_dict_of_the_model_itself_may_be_given_back_in_another_order) {
  Odd odd;
  odd.head = nn::Linear(2, 2);
  number(odd);
  const auto before = state_values(odd);
  const nn::StateDict own = odd.state_dict();
  load_state_dict(odd, {{"module.weight", own.at("head.weight")},
                        {"head.weight", own.at("module.weight")},
                        {"module.bias", own.at("head.bias")},
                        {"head.bias", own.at("module.bias")}});
  BOOST_TEST((state_values(odd) ==
              std::vector<std::vector<double>>{before[2], before[3], before[0], before[1]}));
}

BOOST_AUTO_TEST_SUITE_END()
