// Rules convert the names and tensors of a file to those of a model, and a filter loads a part.
#include "weights.h"

BOOST_AUTO_TEST_SUITE(conversion_test)

using namespace tenon;
using namespace tenon::test;

namespace {

struct Other : nn::Module<Other> {
  WeightsBody body;
  nn::Linear head{3, 5};  // of another size than in the file
};
struct More : nn::Module<More> {
  nn::Linear tail{2, 2};
};

// A state dict as another framework might have it: other names, and matrices the other way round.
nn::StateDict foreign() {
  return {{"net/dense/kernel", arange(0, 6).to(f32).reshape({3, 2})},
          {"net/dense/bias", arange(10, 12).to(f32)}};
}
const std::vector<LoadRule> kRules = {
    {.pattern = "^net/dense/", .replacement = ""},
    {.pattern = "^kernel$", .replacement = "weight", .permute = {1, 0}}};

}  // namespace

BOOST_AUTO_TEST_CASE(rules_rename_and_transpose) {
  TempFolder folder;
  save_safetensors(folder / "foreign", foreign());
  for (bool from_file : {true, false}) {
    nn::Linear model(3, 2);
    const LoadReport report = from_file ? load(folder / "foreign", model, {.rules = kRules})
                                        : load_state_dict(model, foreign(), {.rules = kRules});
    BOOST_TEST((model.weight.to_vector<float>() == std::vector<float>{0, 2, 4, 1, 3, 5}));
    BOOST_TEST((model.bias.to_vector<float>() == std::vector<float>{10, 11}));
    BOOST_TEST(report.complete());
    BOOST_REQUIRE(report.renamed.size() == 2u);
    BOOST_TEST(report.renamed[0].from == "net/dense/kernel");
    BOOST_TEST(report.renamed[0].to == "weight");
    BOOST_TEST(report.unverified == from_file);
  }
  const nn::StateDict loaded = load(folder / "foreign", {.rules = kRules});
  BOOST_TEST((loaded.keys() == std::vector<std::string>{"weight", "bias"}));
  BOOST_TEST((loaded.at("weight").shape() == Shape{2, 3}));
  BOOST_TEST((loaded.at("weight").to_vector<float>() == std::vector<float>{0, 2, 4, 1, 3, 5}));
}

BOOST_AUTO_TEST_CASE(rules_apply_to_wrapped_models) {
  nn::DataParallel model(nn::Linear(3, 2), {"cpu:0", "cpu:1"});
  load_state_dict(model, foreign(), {.rules = kRules});
  BOOST_TEST((model.module.weight.to_vector<float>() == std::vector<float>{0, 2, 4, 1, 3, 5}));
}

BOOST_AUTO_TEST_CASE(a_permutation_concerns_tensors_of_its_dimensions) {
  const nn::StateDict kernels = {{"conv.kernel", arange(0, 24).reshape({2, 3, 4, 1})},
                                 {"dense.kernel", arange(0, 6).reshape({3, 2})}};
  TempFolder folder;
  save(folder / "kernels.h5", kernels);
  const nn::StateDict loaded = load(
      folder / "kernels.h5",
      {.rules = {
           {.pattern = "kernel$", .replacement = "weight", .permute = {1, 0}},
           {.pattern = "(\\w+)\\.kernel$", .replacement = "$1.weight", .permute = {3, 2, 0, 1}}}});
  BOOST_TEST(
      (loaded.at("dense.weight").to_vector<int64_t>() == std::vector<int64_t>{0, 2, 4, 1, 3, 5}));
  BOOST_TEST((loaded.at("conv.weight").shape() == Shape{1, 4, 2, 3}));
  BOOST_TEST((loaded.at("conv.weight").to_vector<int64_t>() ==
              kernels.at("conv.kernel").permute({3, 2, 0, 1}).to_vector<int64_t>()));
}

BOOST_AUTO_TEST_CASE(rules_that_cannot_be_applied_are_refused) {
  const nn::StateDict two = {{"a", ones({2})}, {"b", ones({2})}};
  nn::Linear model(2, 2);
  const auto error = [&](const LoadOptions& options) {
    return error_of([&] { load_state_dict(model, two, options); });
  };
  BOOST_TEST(has(error({.rules = {{.pattern = "(", .replacement = ""}}}),
                 "'(' cannot be used as a regular expression"));
  BOOST_TEST(has(error({.only = "["}), "load: .only '[' cannot be used as a regular expression"));
  BOOST_TEST(has(error({.only = "*bias"}), "nothing before a '*', '+' or '?'"));
  BOOST_TEST(has(error({.rules = {{.pattern = "a", .permute = {0, 2}}}}), "permutes by (0, 2)"));
  BOOST_TEST(has(error({.rules = {{.pattern = "a", .permute = {0, 0}}}}), "permutes by (0, 0)"));
  BOOST_TEST(has(error({.rules = {{.pattern = ".", .replacement = "c"}}}),
                 "the rules turn both 'a' and 'b' into 'c'"));
  const nn::StateDict longer = {{std::string(5000, 'a'), ones({2})}};
  BOOST_CHECK_THROW(load_state_dict(model, longer, {.only = "a"}), StateDictError);
}

BOOST_AUTO_TEST_CASE(a_filter_loads_a_part_and_leaves_the_rest) {
  for (const char* only : {"^body\\.", "^(?!head)"})
    for (const char* file : {"net.safetensors", "net_wrapped.safetensors"}) {
      Other model;
      const std::vector<float> before = model.head.weight.to_vector<float>();
      const LoadReport report = load(weights_file(file), model, {.only = only});
      BOOST_TEST(report.complete());
      BOOST_TEST(report.loaded() == 7u);
      BOOST_TEST((report.skipped == std::vector<std::string>{"head.weight", "head.bias"}));
      BOOST_TEST(has(report.str(), "loaded 7 of 7 tensors"));
      BOOST_TEST(has(report.str(), "\n  left out: head.weight, head.bias"));
      BOOST_TEST(model.body.norm.running_var.to_vector<float>()[2] == 602);
      BOOST_TEST((model.head.weight.to_vector<float>() == before));

      nn::DataParallel<Other> wrapped(Other(), {"cpu:0", "cpu:1"});
      BOOST_TEST(load(weights_file(file), wrapped, {.only = only}).loaded() == 7u);
      BOOST_TEST(wrapped.module.body.fc1.weight.to_vector<float>()[5] == 105);
    }
  Other model;
  BOOST_CHECK_THROW(load(weights_file("net.safetensors"), model), StateDictError);
}

BOOST_AUTO_TEST_CASE(a_filter_that_fits_nothing_of_the_file_is_an_error) {
  More model;
  BOOST_TEST(has(error_of<StateDictError>(
                     [&] { load(weights_file("net.safetensors"), model, {.only = "^tail"}); }),
                 "Missing key(s) in state_dict: \"tail.weight\", \"tail.bias\""));
}

BOOST_AUTO_TEST_CASE(a_filter_that_fits_nothing_of_the_model_is_an_error) {
  nn::DataParallel<WeightsNet> model(WeightsNet(), {"cpu:0", "cpu:1"});
  const auto path = weights_file("net.safetensors");
  for (const char* only : {"^fc1", "^module\\.body"}) {
    const std::string text = error_of<StateDictError>([&] { load(path, model, {.only = only}); });
    BOOST_TEST(has(text, "load: .only '"), text);
    BOOST_TEST(has(text, "' matches no name of "), text);
    BOOST_TEST(has(text, "named like \"body.fc1.weight\""), text);
    BOOST_TEST(load(path, model, {.strict = false, .only = only}).loaded() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(rules_that_match_nothing_are_named) {
  WeightsNet model;
  const auto path = weights_file("net.safetensors");
  const std::vector<LoadRule> rules = {{"^encoder\\.", "fc1."}, {"^body", "body"}};
  const LoadReport report = load(path, model, {.rules = rules});
  BOOST_TEST((report.unused_rules == std::vector<std::string>{"^encoder\\."}));
  BOOST_TEST(has(report.str(), "\n  rules that match no name: ^encoder"));
  // It matches, though it has nothing to permute.
  const std::vector<LoadRule> deep = {{.pattern = "weight$", .permute = {3, 2, 0, 1}}};
  BOOST_TEST(load(path, model, {.rules = deep}).unused_rules.empty());
  More more;
  BOOST_TEST(has(error_of<StateDictError>([&] { load(path, more, {.rules = rules}); }),
                 "\n\tThe rule '^encoder\\.' matches no name of the file."));
}

BOOST_AUTO_TEST_SUITE_END()
