// Checkpoints in several files.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/modules/data_parallel.h>
#include <tenon/modules/linear.h>
#include <tenon/modules/optim/adam.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_manager.h>
#include <tenon/serialization/checkpoint_reader.h>
#include <tenon/serialization/tensor_copy.h>

#include "serialization/numbered_tensors.h"
#include "support/expect.h"
#include "weights.h"

BOOST_AUTO_TEST_SUITE(shards_test)

using namespace tenon;
using nn::StateDict;
using tenon::test::kSharded, tenon::test::numbered_tensors, tenon::test::refusal;
using tenon::test::require_error;
namespace fs = std::filesystem;

namespace {

void require_generation(const StateDict& found, int number) {
  const StateDict wanted = numbered_tensors(number);
  BOOST_REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    BOOST_TEST(found[i].first == wanted[i].first);
    BOOST_TEST((found[i].second.shape() == wanted[i].second.shape()));
    BOOST_TEST((found[i].second.to_vector<float>() == wanted[i].second.to_vector<float>()));
  }
}

// The shards in a folder, in the order of their numbers.
std::vector<fs::path> shards_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder))
    if (has(entry.path().filename().string(), "-of-")) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_sharded_checkpoint_loads_as_a_file_does) {
  TempFolder folder;
  const fs::path path = folder / "model.h5";
  save(path, numbered_tensors(1), kSharded);
  const std::vector<fs::path> shards = shards_in(folder.path());
  BOOST_REQUIRE(shards.size() == 2u);
  BOOST_TEST(shards[0].filename().string().starts_with("model.h5."));
  BOOST_TEST(shards[0].filename().string().ends_with("-00001-of-00002.h5"));
  require_generation(load(path), 1);
  BOOST_TEST(load(shards[1]).size() == 1u);  // each shard is a checkpoint
  const CheckpointInfo info = inspect(path);
  BOOST_TEST(info.tensors.size() == 4u);
  BOOST_TEST(info.shards.size() == 2u);
  BOOST_TEST(info.parts.empty());
  BOOST_TEST(info.file_bytes ==
             fs::file_size(path) + fs::file_size(shards[0]) + fs::file_size(shards[1]));

  save(path, numbered_tensors(2), kSharded);  // its shards take the place of the old ones
  BOOST_TEST(folder.count() == 3u);
  BOOST_TEST(!fs::exists(shards[0]));
  require_generation(load(path), 2);
  save(path, numbered_tensors(3), {.max_shard_size = 1});
  BOOST_TEST(folder.count() == 5u);
  require_generation(load(path), 3);
  save(path, numbered_tensors(4), {.max_shard_size = 1 << 20});  // all fits into one file
  BOOST_TEST(folder.count() == 1u);
  require_generation(load(path), 4);
}

BOOST_AUTO_TEST_CASE(wrapped_and_plain_models_interchange_shards) {
  TempFolder folder;
  nn::Linear plain(30, 20), other(30, 20);
  nn::DataParallel wrapped(other, {Device("cpu:0")});
  save(folder / "wrapped.h5", wrapped, {.max_shard_size = 500});
  BOOST_TEST(shards_in(folder.path()).size() == 2u);
  BOOST_TEST(load(folder / "wrapped.h5", plain).renamed.size() == 2u);
  BOOST_TEST((plain.weight.to_vector<float>() == other.weight.to_vector<float>()));
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink(folder / "wrapped.h5", folder / "elsewhere/link.h5");
  BOOST_TEST(load(folder / "elsewhere/link.h5", wrapped).loaded() == 2u);
}

BOOST_AUTO_TEST_CASE(a_training_run_in_shards_goes_on) {
  TempFolder folder;
  nn::Linear model(40, 30);
  optim::Adam adam(model.parameters(), {.lr = 0.5});
  model(ones({2, 40})).sum().backward();
  adam.step();
  Checkpoint run{.model = model, .optimizer = adam, .epoch = 3, .user = {{"best", 0.5}}};
  save_async(folder / "run.h5", run, {.max_shard_size = 5000}).wait();
  BOOST_TEST(shards_in(folder.path()).size() >= 3u);
  const std::vector<float> weight = model.weight.to_vector<float>();
  nn::Linear fresh(40, 30);
  optim::Adam empty(fresh.parameters(), {.lr = 0.1});
  Checkpoint next{.model = fresh, .optimizer = empty};
  load(folder / "run.h5", next);
  BOOST_TEST((fresh.weight.to_vector<float>() == weight));
  BOOST_TEST(empty.lr() == 0.5);
  BOOST_TEST(next.epoch == 3);
  BOOST_TEST(next.user.at("best").number() == 0.5);
}

BOOST_AUTO_TEST_CASE(a_shard_that_is_not_the_one_is_refused_by_name) {
  TempFolder folder;
  const fs::path path = folder / "model.h5";
  save(path, numbered_tensors(1), kSharded);
  const std::vector<fs::path> shards = shards_in(folder.path());
  const std::string first = read_bytes(shards[0]), second = read_bytes(shards[1]);
  const auto refused = [&](const char* why, const fs::path& shard) {
    const std::string text = refusal(path);
    BOOST_TEST(has(text, "cannot load checkpoint '"), text);
    BOOST_TEST(has(text, shard.string()), text);
    BOOST_TEST(has(text, why), text);
  };
  fs::rename(shards[1], folder / "moved");
  refused("its shard 2 of 2 cannot be used: cannot load checkpoint '", shards[1]);
  refused("there is no such file", shards[1]);
  fs::rename(folder / "moved", shards[1]);
  write_bytes(shards[0], second);
  write_bytes(shards[1], first);
  refused("or has changed places with another", shards[0]);
  save(folder / "other.h5", StateDict{{"d", full({1500}, 9)}});
  write_bytes(shards[0], first);
  write_bytes(shards[1], read_bytes(folder / "other.h5"));
  refused("it is of another save", shards[1]);
  for (size_t length : {second.size() - 1, second.size() / 2, size_t{100}, size_t{0}}) {
    write_bytes(shards[1], second.substr(0, length));
    refused(length ? "cut off" : "the file is empty", shards[1]);
  }
  std::mt19937 random(3);
  size_t believed = 0;
  for (int i = 0; i < 300; ++i) {
    std::string damaged = second;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    write_bytes(shards[1], damaged);
    believed += refusal(path).empty();
  }
  BOOST_TEST(believed == 0u);
  write_bytes(shards[1], second);
  require_generation(load(path), 1);
}

// Indexes that Tenon would not write, with checksums that are right.
BOOST_AUTO_TEST_CASE(a_forged_index_is_refused) {
  TempFolder folder;
  save(folder / "model.h5", numbered_tensors(1), kSharded);
  const std::vector<fs::path> shards = shards_in(folder.path());
  const fs::path forged = folder / "forged.h5";
  const auto entry = [](int number, const std::string& name, const fs::path& file) {
    const std::string bytes = read_bytes(file),
                      key = ", \"shard.0000" + std::to_string(number) + ".";
    uint64_t low = 0, high = 0;
    std::memcpy(&low, bytes.data() + 496, 8);
    std::memcpy(&high, bytes.data() + 504, 8);
    char sum[33];
    std::snprintf(sum, sizeof sum, "%016" PRIx64 "%016" PRIx64, high, low);
    return key + "name\": \"" + name + "\"" + key + "bytes\": " + std::to_string(bytes.size()) +
           key + "checksum\": \"" + sum + "\"";
  };
  const auto refused = [&](const std::string& count, const std::string& entries,
                           const char* more = nullptr) {
    const std::string json = "{\"count\": " + count + entries + "}";
    TensorSource source{
        {{"@shards/@values", {static_cast<int64_t>(json.size())}, DType::u8}}, {}, {}};
    if (more) source.tensors.push_back({more, {1}, DType::u8});
    source.read = [&](size_t i) {
      return i ? zeros({1}, {.dtype = u8}) : from_host(json.data(), u8, source.tensors[0].shape);
    };
    write_tensors(forged, FileFormat::tenon, source);
    const std::string text = refusal(forged);
    if (!text.empty()) BOOST_TEST(has(text, "cannot load checkpoint '" + forged.string()), text);
    return text;
  };
  const std::string one = shards[0].filename(), two = shards[1].filename(),
                    first = entry(1, one, shards[0]), second = entry(2, two, shards[1]);
  BOOST_TEST(refused("2", first + second) == "");  // as the index of model.h5
  require_generation(load(forged), 1);

  fs::create_directory(folder / "sub");
  fs::copy_file(shards[0], folder / "sub/shard.h5");
  for (const std::string& name : {std::string("sub/shard.h5"), "../" + one, "sub/../" + one,
                                  shards[0].string(), std::string(".."), std::string("."),
                                  std::string(), std::string("sub\\u0000"), std::string("/")})
    BOOST_TEST(has(refused("1", entry(1, name, shards[0])), "which is not a file in its folder"),
               name);
  BOOST_TEST(has(refused("1", entry(1, "sub", shards[0])), "it is a folder"));
  BOOST_TEST(has(refused("2", first + entry(2, one, shards[0])),
                 "has the tensor 'a', which an earlier one has, too"));
  BOOST_TEST(has(refused("1", entry(1, "model.h5", folder / "model.h5")), "is an index itself"));
  BOOST_TEST(has(refused("1", entry(1, "forged.h5", shards[0])), "it is of another save"));
  for (const char* count : {"0", "3", "-1", "1e30", "18446744073709551615", "\"2\""})
    BOOST_TEST(has(refused(count, first + second), "its list of shards is damaged"), count);
  std::string half = second;
  half.erase(half.size() - 9, 8);
  BOOST_TEST(has(refused("2", first + half), "a checksum has 32 hexadecimal digits"));
  for (const char* more : {"tensor", "@user/tensor"})
    BOOST_TEST(has(refused("2", first + second, more), "its list of shards is damaged"), more);
  // A link counts as what it leads to.
  fs::rename(shards[0], folder / "sub/moved.h5");
  fs::create_symlink("sub/moved.h5", shards[0]);
  BOOST_TEST(refused("2", first + second) == "");
}

// A shard of the save before, and one that a killed process left, go with the next save; those of
// another index stay, and so do those that a copy of the index lists.
BOOST_AUTO_TEST_CASE(shards_that_nobody_lists_are_removed) {
  TempFolder folder;
  save(folder / "model.h5", numbered_tensors(1), kSharded);
  save(folder / "other.h5", numbered_tensors(5), kSharded);
  fs::copy_file(folder / "model.h5", folder / "best.h5");
  const std::vector<fs::path> shards = shards_in(folder.path());
  const std::string stray = folder / "model.h5.0123456789abcdef-00001-of-00001.h5";
  fs::copy_file(shards[0], stray);
  // What a killed save left, whose number another process has by now.
  write_bytes(folder / ".model.h5.tmp.1.1", "");
  write_bytes(folder / "model.h5.0123456789abcdef-00001-of-00001.txt", "mine");
  write_bytes(folder / "model.h5.0123456789abcdef-00002-of-00002.h5", "mine as well");
  save(folder / "model.h5", numbered_tensors(2), kSharded);
  BOOST_TEST(!fs::exists(stray));
  require_generation(load(folder / "best.h5"), 1);
  require_generation(load(folder / "model.h5"), 2);
  require_generation(load(folder / "other.h5"), 5);
  BOOST_TEST(folder.count() == 11u);
  fs::remove(folder / "best.h5");
  // They go before a save begins: one may be killed after the other.
  fs::copy_file(shards_in(folder.path()).back(), stray);
  BOOST_CHECK_THROW(save(folder / "model.h5", StateDict{{"a", full({2}, 1)}, {"/", full({2}, 1)}},
                         {.max_shard_size = 8}),
                    CheckpointError);
  BOOST_TEST(!fs::exists(stray));
  require_generation(load(folder / "model.h5"), 2);
  save(folder / "model.h5", numbered_tensors(3));
  BOOST_TEST(folder.count() == 6u);
  require_generation(load(folder / "model.h5"), 3);
}

BOOST_AUTO_TEST_CASE(of_saves_at_once_one_is_whole) {
  TempFolder folder;
  const fs::path path = folder / "model.h5";
  const auto save_some = [&](int first) {
    for (int i = 0; i < 5; ++i) save(path, numbered_tensors(first + i), kSharded);
  };
  std::thread other(save_some, 10);
  save_some(20);
  other.join();
  const int last = static_cast<int>(load(path).at("c").to_vector<float>()[0]);
  require_generation(load(path), last);
  BOOST_TEST((last == 14 || last == 24));
  save(path, numbered_tensors(1), kSharded);
  BOOST_TEST(folder.count() == 3u);  // nothing is left of any
}

// A file that cannot be read may be an index of older shards, and of none that are newer.
BOOST_AUTO_TEST_CASE(a_damaged_file_keeps_older_shards_alone) {
  TempFolder folder;
  const fs::path path = folder / "model.h5", damaged = folder / "best.h5";
  save(path, numbered_tensors(1), kSharded);
  const std::vector<fs::path> older = shards_in(folder.path());
  write_bytes(damaged, read_bytes(path).substr(0, 1000));
  const auto now = fs::last_write_time(path);
  for (const fs::path& shard : older) fs::last_write_time(shard, now - std::chrono::hours(2));
  fs::last_write_time(damaged, now - std::chrono::hours(1));
  for (int number : {2, 3, 4}) save(path, numbered_tensors(number), kSharded);
  for (const fs::path& shard : older) BOOST_TEST(fs::exists(shard));
  BOOST_TEST(folder.count() == 6u);
  fs::remove(damaged);
  save(path, numbered_tensors(5), kSharded);
  BOOST_TEST(folder.count() == 3u);
}

BOOST_AUTO_TEST_CASE(a_manager_keeps_the_shards_of_its_files) {
  TempFolder folder;
  nn::Linear model(40, 30);
  Checkpoint run{.model = model};
  {
    CheckpointManager manager(folder.path(), {.keep = 2, .max_shard_size = 1000});
    for (int step = 1; step <= 4; ++step) {
      run.step = step;
      no_grad([&] { model.weight.fill_(step); });
      manager.save(run, step == 1 ? 0.0 : 1.0);
    }
    manager.wait();
  }
  // Three indexes are left, of the steps 1 (the best), 3 and 4.
  size_t listed = 0;
  for (const char* name : {"best.h5", "step-000000000003.h5", "step-000000000004.h5"})
    listed += inspect(folder / name).shards.size();
  BOOST_TEST(shards_in(folder.path()).size() == listed);
  nn::Linear loaded(40, 30);
  load(folder / "best.h5", loaded);
  BOOST_TEST(loaded.weight.to_vector<float>()[0] == 1);
  Checkpoint next{.model = loaded};
  CheckpointManager manager(folder.path(), {.max_shard_size = 1000});
  manager.resume(next);
  BOOST_TEST(next.step == 4);
}

// ---- indexes of safetensors files

BOOST_AUTO_TEST_CASE(an_index_of_safetensors_files_loads) {
  TempFolder folder;
  const fs::path index = folder / "model.safetensors.index.json";
  save_safetensors(folder / "model-00001-of-00002.safetensors",
                   StateDict{{"weight", full({2, 3}, 1)}});
  save_safetensors(folder / "model-00002-of-00002.safetensors", StateDict{{"bias", full({2}, 2)}});
  const auto write = [&](const std::string& first, const std::string& second) {
    write_bytes(index, R"({"metadata": {"total_size": 32}, "weight_map": {"bias": ")" + second +
                           R"(", "weight": ")" + first + "\"}}\n");
  };
  const char *one = "model-00001-of-00002.safetensors", *two = "model-00002-of-00002.safetensors";
  write(one, two);
  nn::Linear model(3, 2);
  const LoadReport report = load(index, model);
  BOOST_TEST(report.loaded() == 2u);
  BOOST_TEST((report.format == FileFormat::safetensors));
  BOOST_TEST(model.bias.to_vector<float>()[1] == 2);
  BOOST_TEST(tenon::open(index).read("weight").to_vector<float>()[5] == 1);
  write(two, one);  // exchanged
  BOOST_TEST(has(refusal(index), "which the index does not list for it"));
  BOOST_TEST(has(refusal(index), one));
  write(one, one);
  BOOST_TEST(has(refusal(index), "it lacks the tensor 'bias'"));
  write(one, "missing.safetensors");
  BOOST_TEST(has(refusal(index), "missing.safetensors': there is no such file"));
  write(one, "../secret.safetensors");
  BOOST_TEST(has(refusal(index), "names no file in its folder for tensor 'bias'"));
  for (const char* text : {"{", "{}", R"({"weight_map": 1})", R"({"weight_map": {"a": 1}})",
                           R"({"weight_map": {}})"}) {
    write_bytes(index, text);
    BOOST_TEST(has(refusal(index), index.string()), text);
  }
}

BOOST_AUTO_TEST_CASE(an_index_without_its_shards_is_never_a_file_without_tensors) {
  TempFolder folder;
  const fs::path path = folder / "model.h5";
  save(path, numbered_tensors(1), kSharded);
  fs::remove(shards_in(folder.path()).at(0));
  for (bool verify : {true, false}) {
    require_error<CheckpointError>([&] { load(path, LoadOptions{.verify = verify}); },
                                   "its shard 1 of 2 cannot be used", "there is no such file");
    require_error<CheckpointError>([&] { inspect(path, "", verify); }, "its shard 1 of 2");
  }
}

BOOST_AUTO_TEST_SUITE_END()
