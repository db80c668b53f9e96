// The commands of `tenon checkpoint` that compare and convert files, run as a user runs them.
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <tenon/core/tensor.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/optim/sgd.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/training_checkpoint.h>

#include "cli/programs.h"

BOOST_AUTO_TEST_SUITE(checkpoint_test)

using namespace tenon::test::programs;

tenon::Tensor large(const std::vector<int64_t>& values) {
  return tenon::from_host(values.data(), tenon::i64, {static_cast<int64_t>(values.size())},
                          {.dtype = tenon::i64});
}

std::string weights_of_others(const char* name) {
  return tenon::test::reference_dir() + "/weights/" + name;
}

BOOST_AUTO_TEST_CASE(checkpoints_are_compared) {
  using namespace tenon;
  Folder folder;
  auto diff = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "diff");
    return run(folder, checkpoint_command(words));
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor w = tensor({{1, 2}, {3, 4}});
  save(folder / "a.h5", nn::StateDict{{"w", w}, {"nan", full({3}, nan)}, {"gone", ones({1})}});
  save_safetensors(folder / "b.safetensors", nn::StateDict{{"new\x1b[31m", ones({2}, i64)},
                                                           {"nan", full({3}, nan)},
                                                           {"w", tensor({{1, 2}, {3, 4.5}})}});
  const auto same = diff({folder / "a.h5", folder / "a.h5"});
  BOOST_TEST(same.status == 0);
  BOOST_TEST(same.out == "equal: 3 tensors\n");
  const auto other = diff({folder / "a.h5", folder / "b.safetensors"});
  BOOST_TEST(other.status == 1);
  BOOST_TEST(other.out ==
             "w            1 of 4 values, by at most 0.5 (relative 0.111111)\n"
             "gone         only in the first file\n"
             "new\\x1b[31m  only in the second file\n"
             "different: 3 of 3 and 3 tensors\n");
  const auto json =
      nlohmann::json::parse(diff({folder / "a.h5", folder / "b.safetensors", "--json"}).out);
  BOOST_TEST(json["equal"] == false);
  BOOST_TEST(json["differences"][0]["absolute"] == 0.5);
  BOOST_TEST(json["differences"][0]["elements"] == 1);
  BOOST_TEST(json["differences"][2]["key"] == "new\x1b[31m");
  BOOST_TEST(json["differences"][2]["b"]["dtype"] == "i64");

  const nn::StateDict odd{{"big", large({int64_t{1} << 62, -(int64_t{1} << 62)})},
                          {"shape", ones({2, 1})},
                          {"inf", full({1}, 1.0)},
                          {"half", full({1}, 1.0, f16)}};
  const nn::StateDict even{{"big", large({(int64_t{1} << 62) + 1, int64_t{1} << 62})},
                           {"shape", ones({1, 2})},
                           {"inf", full({1}, std::numeric_limits<double>::infinity())},
                           {"half", full({1}, 1.0)}};
  save(folder / "c.h5", odd);
  save(folder / "d.h5", even);
  const auto many = diff({folder / "c.h5", folder / "d.h5"});
  BOOST_TEST(many.status == 1);
  REQUIRE_HAS(many.out, "big    2 of 2 values, by at most 9.22337e+18 (relative 2)\n");
  REQUIRE_HAS(many.out, "shape  shape (2, 1) and (1, 2)\n");
  REQUIRE_HAS(many.out, "inf    1 of 1 values, by at most Infinity (relative Infinity)\n");
  REQUIRE_HAS(many.out, "half   dtype f16 and f32\n");

  save(folder / "e.h5", nn::StateDict{{"w", tensor({{1, 2}, {3, 4.5}})}});
  save(folder / "f.h5", nn::StateDict{{"w", w}});
  BOOST_TEST(diff({folder / "e.h5", folder / "f.h5", "--atol", "0.4"}).status == 1);
  BOOST_TEST(diff({folder / "e.h5", folder / "f.h5", "--atol", "0.5"}).status == 0);
  BOOST_TEST(diff({folder / "e.h5", folder / "f.h5", "--rtol", "0.13"}).status == 0);

  // One model in five formats, with and without groups.
  for (const char* name : {"net.pt", "net.npz", "net.h5"}) {
    const auto equal = diff({weights_of_others("net.safetensors"), weights_of_others(name)});
    BOOST_TEST(equal.status == 0, name << ": " << equal.out << equal.err);
  }
  const auto part = diff(
      {weights_of_others("net.pt"), weights_of_others("nested.pt"), "--section-b", "ema/model"});
  BOOST_TEST(part.status == 0, part.out << part.err);
  const auto missing = diff({folder / "a.h5", folder / "none"});
  BOOST_TEST(missing.status == 2);
  REQUIRE_HAS(missing.err, "there is no such file");
  BOOST_TEST(diff({folder / "a.h5"}).status == 2);
}

BOOST_AUTO_TEST_CASE(values_are_summed_up) {
  using namespace tenon;
  Folder folder;
  const double inf = std::numeric_limits<double>::infinity();
  save(folder / "a.h5", nn::StateDict{{"w", tensor({1.0, 2.0, 4.0, inf, -inf, std::nan("")}, f64)},
                                      {"e\n", ones({0, 2})},
                                      {"i", tensor({7}, i64)}});
  const auto stats = run(folder, checkpoint_command({"stats", folder / "a.h5"}));
  BOOST_TEST(stats.status == 0);
  BOOST_TEST(stats.out ==
             "tensor  dtype  shape   min  max  mean     std      NaN  inf\n"
             "w       f64    (6,)    1    4    2.33333  1.52753  1    2\n"
             "e\\n     f32    (0, 2)  NaN  NaN  NaN      NaN      0    0\n"
             "i       i64    (1,)    7    7    7        NaN      0    0\n");
  const auto json = nlohmann::json::parse(
      run(folder, checkpoint_command({"stats", folder / "a.h5", "--json", "--only", "^[we]"})).out);
  BOOST_TEST(json["tensors"].size() == 2u);
  BOOST_TEST(json["tensors"][0]["max"] == 4.0);
  BOOST_TEST(json["tensors"][0]["inf"] == 2);
  BOOST_TEST(json["tensors"][1]["mean"] == "NaN");
  const auto strange = run(folder, checkpoint_command({"stats", weights_of_others("strange.h5")}));
  BOOST_TEST(strange.status == 0);
  REQUIRE_HAS(strange.out, "its type int8 is none of Tenon's");
}

BOOST_AUTO_TEST_CASE(checkpoints_are_converted_and_renamed) {
  using namespace tenon;
  Folder folder;
  const std::string a = folder / "a.h5", b = folder / "b.safetensors", c = folder / "c.h5";
  auto command = [&](std::vector<std::string> words) {
    return run(folder, checkpoint_command(words));
  };
  const nn::StateDict tensors{{"fc/kernel", arange(0, 6).reshape({2, 3})}, {"n", ones({}, i64)}};
  save_safetensors(b, tensors);
  const auto slash = command({"convert", b, a});
  BOOST_TEST(slash.status == 1);
  REQUIRE_HAS(slash.err, "HDF5 takes '/' for a folder. Rename it");
  BOOST_TEST(!fs::exists(a));
  const auto renamed =
      command({"rename", b, a, "--rule", "/kernel$", ".weight", "--rule", "^(.*)$", "net.$1",
               "--permute", "/kernel$", "1,0", "--permute", "/kernel$", "3,2,0,1"});
  BOOST_TEST(renamed.status == 0, renamed.err);
  REQUIRE_HAS(renamed.out, "fc/kernel  -> net.fc.weight\n");
  REQUIRE_HAS(renamed.out, "a.h5: Tenon file, 2 tensors, ");
  const nn::StateDict read = load(a);
  BOOST_TEST((read.keys() == std::vector<std::string>{"net.fc.weight", "net.n"}));
  BOOST_TEST((read.at("net.fc.weight").shape() == Shape{3, 2}));
  BOOST_TEST((read.at("net.fc.weight").to_vector<int>() == std::vector<int>{0, 3, 1, 4, 2, 5}));

  const std::string before = slurp(b);
  const auto exists = command({"convert", a, b});
  BOOST_TEST(exists.status == 1);
  REQUIRE_HAS(exists.err, "exists: --force overwrites it");
  BOOST_TEST(slurp(b) == before);
  BOOST_TEST(command({"convert", a, b, "--force"}).status == 0);
  BOOST_TEST(command({"convert", b, c}).status == 0);
  BOOST_TEST(command({"diff", a, c}).status == 0);
  BOOST_TEST(command({"convert", a, a, "--force", "--only", "n$"}).status == 0);
  BOOST_TEST(load(a).size() == 1u);

  for (const char* name : {"net.pt", "net.npz", "net.h5", "net.safetensors"})
    for (const std::string& to : {a, b}) {
      const auto made = command({"convert", weights_of_others(name), to, "--force"});
      BOOST_TEST(made.status == 0, made.err);
      BOOST_TEST(command({"diff", weights_of_others(name), to}).status == 0);
    }
  const std::pair<std::vector<std::string>, const char*> mistakes[] = {
      {{"convert", b, folder / "x"}, "say which format to write, --to tenon or --to safetensors"},
      {{"convert", b, folder / "x", "--to", "npz"}, "--to"},
      {{"convert", weights_of_others("strange.h5"), folder / "x.h5"}, "Leave it out with --only"},
      {{"rename", b, folder / "x.h5", "--rule", "(", "x"},
       "cannot be used as a regular expression"},
      {{"rename", b, folder / "x.h5", "--rule", "^.*$", "x"}, "the rules turn both"},
      {{"rename", b, folder / "x.h5", "--rule", "^", "@"}, "a name for parts of a training run"},
      {{"convert", b, folder / "x.h5", "--permute", "x", "1;0"}, "not an order of dimensions"},
      {{"rename", b, folder / "x.h5"}, "--rule is required"}};
  for (const auto& [words, why] : mistakes) {
    const auto refused = command(words);
    BOOST_TEST(refused.status != 0);
    REQUIRE_HAS(refused.err, why);
  }
  BOOST_TEST(!fs::exists(folder / "x.h5"));
  BOOST_TEST(!fs::exists(folder / "x"));
}

BOOST_AUTO_TEST_CASE(training_runs_are_converted_as_a_whole_or_as_a_model) {
  using namespace tenon;
  Folder folder;
  const std::string a = folder / "run.h5", b = folder / "copy.h5", c = folder / "m.safetensors";
  nn::Linear net(3, 2);
  optim::SGD sgd(net.parameters(), {.lr = 0.5, .momentum = 0.9});
  net(ones({1, 3})).sum().backward();
  sgd.step();
  Checkpoint whole{.model = net, .optimizer = sgd};
  whole.step = 7;
  save(a, whole);
  auto command = [&](std::vector<std::string> words) {
    return run(folder, checkpoint_command(words));
  };
  BOOST_TEST(command({"convert", a, b}).status == 0);
  BOOST_TEST(slurp(a) == slurp(b));
  const auto refused = command({"convert", a, c});
  BOOST_TEST(refused.status == 1);
  REQUIRE_HAS(refused.err, "which a safetensors file does not hold: --model-only takes the model");
  BOOST_TEST(command({"convert", a, c, "--model-only"}).status == 0);
  BOOST_TEST(load(c).size() == 2u);
  whole.step = 8;
  save(b, whole);
  const auto differ = command({"diff", a, b});
  BOOST_TEST(differ.status == 1);
  REQUIRE_HAS(differ.out, "@progress step  7 and 8\n");
}

BOOST_AUTO_TEST_CASE(values_of_training_runs_are_compared_by_name) {
  using namespace tenon;
  Folder folder;
  const std::string a = folder / "a.h5", b = folder / "b.h5";
  nn::Linear net(3, 2);
  auto write = [&](const std::string& path, double lr, CheckpointValues user) {
    optim::SGD sgd(net.parameters(), {.lr = lr, .momentum = 0.5});
    Checkpoint run{.model = net, .optimizer = sgd};
    run.user = std::move(user);
    save(path, run);
  };
  auto diff = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"diff", a, b});
    return run(folder, checkpoint_command(words));
  };
  const uint64_t seed = UINT64_MAX;
  write(a, 0.1, {{"note", "x"}, {"seed", seed}, {"old", 3}, {"whole", 7}});
  write(b, 0.2, {{"note", "y"}, {"seed", seed - 1}, {"new\x1b", 0.5}, {"whole", 7.0}});
  const auto differ = diff({});
  BOOST_TEST(differ.status == 1);
  BOOST_TEST(differ.out ==
             "@optimizer param_groups.0.lr  0.1 and 0.2\n"
             "@user note                    \"x\" and \"y\"\n"
             "@user old                     3, only in the first file\n"
             "@user seed                    18446744073709551615 and 18446744073709551614\n"
             "@user new\\x1b                 0.5, only in the second file\n"
             "different: 0 of 2 and 2 tensors, and 5 values of the other parts\n");
  // Numbers alone have tolerances.
  const auto near = diff({"--atol", "4", "--json"});
  BOOST_TEST(near.status == 1);
  const auto list = nlohmann::json::parse(near.out)["differences"];
  BOOST_REQUIRE(list.size() == 3u);
  BOOST_TEST(list[0]["part"] == "user");
  BOOST_TEST(list[0]["name"] == "note");
  BOOST_TEST(list[0]["a"] == "x");
  BOOST_TEST(list[1]["a"] == 3);
  BOOST_TEST(list[1]["b"] == nullptr);
  BOOST_TEST(list[2]["name"] == "new\x1b");
  write(a, 0.1, {});
  write(b, 0.2, {});
  REQUIRE_HAS(diff({"--atol", "0.05"}).out, "param_groups.0.lr  0.1 and 0.2\n");
  const auto equal = diff({"--rtol", "0.6"});
  BOOST_TEST(equal.status == 0);
  BOOST_TEST(equal.out == "equal: 2 tensors and the values of 3 parts\n");
  write(b, 0.1, {{"x", std::nan("")}});
  REQUIRE_HAS(diff({}).out, "@user x  NaN, only in the second file\n");
  save(b, net);
  REQUIRE_HAS(diff({"--atol", "1"}).out,
              "@optimizer type                         \"SGD\", only in the first file\n");
}

BOOST_AUTO_TEST_CASE(tolerances_are_finite_numbers) {
  Folder folder;
  const std::string a = folder / "a.h5", b = folder / "b.h5";
  tenon::save(a, tenon::nn::StateDict{{"w", tenon::ones({2})}});
  tenon::save(b, tenon::nn::StateDict{{"w", tenon::zeros({2})}});
  for (const char* option : {"--atol", "--rtol"})
    for (const char* value : {"nan", "-nan", "inf", "1e999", "-0.5", "", "1x"}) {
      const auto refused =
          run(folder, checkpoint_command({"diff", a, b, std::string(option) + "=" + value}));
      BOOST_TEST(refused.status == 2, option << " " << value);
      REQUIRE_HAS(refused.err, option);
      if (*value) REQUIRE_HAS(refused.err, "is not a finite number of at least 0, such as 1e-5");
    }
  BOOST_TEST(run(folder, checkpoint_command({"diff", a, b, "--atol", "1"})).status == 0);
}

BOOST_AUTO_TEST_CASE(checkpoints_in_several_files_are_shown_and_verified) {
  Folder folder;
  const std::string whole = folder / "whole.h5", model = folder / "model.h5";
  tenon::save(whole, tenon::nn::Linear(30, 20));
  auto command = [&](const std::vector<std::string>& words) {
    return run(folder, checkpoint_command(words));
  };
  const auto converted = command({"convert", whole, model, "--max-shard-size", "1000"});
  BOOST_REQUIRE_MESSAGE(converted.status == 0, converted.err);
  BOOST_TEST(command({"diff", whole, model}).status == 0);
  REQUIRE_HAS(command({"show", model}).out, " in 2 shards, all checksums right\n");
  const auto shown = nlohmann::json::parse(command({"show", model, "--json"}).out);
  BOOST_TEST(shown["format"] == "Tenon");
  BOOST_TEST(shown["wrappers"].is_array());
  BOOST_TEST(shown["tensors"][0]["key"] == "weight");
  BOOST_TEST((shown["tensors"][0]["shape"] == nlohmann::json{20, 30}));
  BOOST_REQUIRE(shown["shards"].size() == 2u);
  BOOST_TEST(nlohmann::json::parse(command({"verify", model, "--json"}).out)["right"] == true);
  const std::string shard = shown["shards"][1];
  fs::resize_file(folder / shard.c_str(), fs::file_size(folder / shard.c_str()) - 1);
  const auto wrong = command({"verify", model, "--json"});
  BOOST_TEST(wrong.status == 1);
  const auto said = nlohmann::json::parse(wrong.out);
  BOOST_TEST(said["right"] == false);
  REQUIRE_HAS(said["error"].get<std::string>(), shard);
  REQUIRE_HAS(wrong.err, shard);
}

BOOST_AUTO_TEST_SUITE_END()
