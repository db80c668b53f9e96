// States that several threads write and read, and what others see of the memory of a model when
// values are loaded into it.
#include <algorithm>
#include <numeric>
#include <random>

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/graph/compile.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/tensor.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/linear.h>
#include <tenon/serialization/checkpoint.h>

#include "../files.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(large_test)

using namespace tenon;
using nn::StateDict;
using test::require_error;

namespace {

// Tensors of many sizes, of 11 MB together, whose values tell where they belong.
StateDict many_sizes(int first) {
  StateDict all;
  int64_t begin = first;
  for (int64_t count : {1, 700'001, 3, 65'536, 0, 16'384, 1'200'000, 262'144, 5, 500'003}) {
    all.set("tensor." + std::to_string(all.size()), arange(begin, begin + count).to(f32));
    begin += 7 * count + 1;
  }
  return all;
}

bool equal(const StateDict& a, const StateDict& b) {
  bool same = a.size() == b.size();
  for (const auto& [key, tensor] : a)
    same = same && tensor.to_vector<float>() == b.at(key).to_vector<float>();
  return same;
}

struct Net : nn::Module<Net> {
  nn::Linear first{600, 700}, second{700, 500};
  Tensor forward(const Tensor& x) { return second(first(x)); }
};

Net filled(float value) {
  Net net;
  for (const nn::StateEntry& entry : nn::state_entries(net))
    no_grad([&] { Tensor(entry.tensor).fill_(value); });
  return net;
}
bool all_are(const Tensor& tensor, float value) {
  const std::vector<float> values = tensor.to_vector<float>();
  return std::all_of(values.begin(), values.end(), [&](float x) { return x == value; });
}
bool all_are(nn::ModuleRef model, float value) {
  const auto entries = nn::state_entries(model);
  return std::all_of(entries.begin(), entries.end(),
                     [&](const nn::StateEntry& entry) { return all_are(entry.tensor, value); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_size_comes_back_from_one_file_and_from_several) {
  TempFolder folder;
  const StateDict saved = many_sizes(1);
  for (uint64_t shard : {0, 3'000'000}) {
    save(folder / "model.h5", saved, {.max_shard_size = shard});
    BOOST_TEST(equal(load(folder / "model.h5"), saved));
    BOOST_TEST(inspect(folder / "model.h5").tensors.size() == saved.size());
  }
  save_safetensors(folder / "model.safetensors", saved);
  BOOST_TEST(equal(load(folder / "model.safetensors"), saved));
}

BOOST_AUTO_TEST_CASE(a_save_that_fails_anywhere_leaves_the_old_file) {
  TempFolder folder;
  const auto path = folder / "model.h5";
  const StateDict before = many_sizes(1), after = many_sizes(2);
  save(path, before);
  rlimit usual{};
  getrlimit(RLIMIT_FSIZE, &usual);
  for (rlim_t most : {4096, 300'000, 1'500'000, 3'000'000, 6'543'210, 10'900'000}) {
    const rlimit limited{most, usual.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limited);
    const std::string text = error_of<CheckpointError>([&] { save(path, after); });
    setrlimit(RLIMIT_FSIZE, &usual);
    BOOST_TEST(has(text, "cannot save checkpoint '" + path.string() + "': writing failed"), text);
    BOOST_TEST(has(text, "File too large. What was there before is unchanged"), text);
    BOOST_TEST(folder.count() == 1u);
  }
  BOOST_TEST(equal(load(path), before));
  save(path, after);
  BOOST_TEST(equal(load(path), after));
}

BOOST_AUTO_TEST_CASE(damage_anywhere_leaves_the_model_as_it_was) {
  TempFolder folder;
  const auto path = folder / "model.h5";
  save(path, filled(1));
  const std::string whole = read_bytes(path);
  Net model = filled(2);
  std::mt19937_64 random(5);
  for (int i = 0; i < 30; ++i) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    write_bytes(path, damaged);
    require_error<CheckpointError>([&] { load(path, model); }, "cannot load checkpoint '");
    BOOST_TEST(all_are(model, 2));
  }
  write_bytes(path, whole);
  load(path, model);
  BOOST_TEST(all_are(model, 1));
}

// Whoever shares memory with the model has the loaded values, as after copy_.
BOOST_AUTO_TEST_CASE(a_load_is_seen_by_all_who_share_the_memory) {
  TempFolder folder;
  save(folder / "model.h5", filled(1));
  Net model = filled(2);
  const Tensor view = model.first.weight.detach().t(), same = model.second.weight;
  std::vector<float> own(700, 3);
  model.first.bias = nn::Parameter(from_blob(own.data(), {700}));
  load(folder / "model.h5", model);
  synchronize();
  BOOST_TEST(all_are(model, 1));
  BOOST_TEST(all_are(view, 1));
  BOOST_TEST(all_are(same, 1));
  BOOST_TEST((own == std::vector<float>(700, 1)));
  // Values that are loaded are not those of the one who has them, if that changes its own.
  const StateDict tensors = load(folder / "model.h5");
  load_state_dict(model, tensors);
  no_grad([&] { model.second.weight.fill_(5); });
  BOOST_TEST(all_are(tensors.at("second.weight"), 1));
}

BOOST_AUTO_TEST_CASE(a_load_is_a_change_for_autograd_programs_and_replicas) {
  TempFolder folder;
  save(folder / "model.h5", filled(1));
  Net model = filled(2);
  const Tensor x = ones({2, 600});
  const Tensor loss = model(x).sum();
  const uint64_t version = model.second.weight.version();
  load(folder / "model.h5", model);
  BOOST_TEST(model.second.weight.version() > version);
  require_error<Error>([&] { loss.backward(); }, "in place");

  Net other = filled(2);
  auto program = compile([&](const Tensor& input) { return other(input); });
  const auto result = [&] { return no_grad([&] { return program(x); }).to_vector<float>().at(0); };
  for (int i = 0; i < 3; ++i) BOOST_TEST(result() == (600 * 2 + 2) * 700 * 2 + 2);
  load(folder / "model.h5", other);
  for (int i = 0; i < 3; ++i) BOOST_TEST(result() == 601 * 700 + 1);

  nn::DataParallel wrapped(filled(2), {"cpu:0", "cpu:1"});
  const auto sum = [&] { return no_grad([&] { return wrapped(x).to_vector<float>().at(1); }); };
  BOOST_TEST(sum() == (600 * 2 + 2) * 700 * 2 + 2);
  load(folder / "model.h5", wrapped);
  BOOST_TEST(sum() == 601 * 700 + 1);
}

BOOST_AUTO_TEST_SUITE_END()
