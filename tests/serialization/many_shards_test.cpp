// Checkpoints of more files than a process should have open.
#include <filesystem>
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_reader.h>

#include "files.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(many_shards_test)

using namespace tenon;
using tenon::test::require_error;
namespace fs = std::filesystem;

namespace {

constexpr int kShards = 140;

size_t open_files() {
  const fs::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(fs::begin(all), fs::end(all)));
}

nn::StateDict state() {
  nn::StateDict tensors;
  for (int i = 0; i < kShards; ++i) tensors.set("t" + std::to_string(i), full({10}, i));
  return tensors;
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_are_open_only_while_they_are_read) {
  TempFolder folder;
  save(folder / "model.h5", state(), {.max_shard_size = 40});
  const size_t before = open_files();
  {
    const CheckpointReader file = open(folder / "model.h5");
    BOOST_TEST(file.tensors().size() == size_t{kShards});
    BOOST_TEST(open_files() <= before + 129u);  // the index and 128 shards
    for (int i = kShards - 1; i >= 0; --i)
      BOOST_TEST(file.read("t" + std::to_string(i)).sum().item() == 10.0 * i);
    BOOST_TEST(open_files() <= before + 129u);
  }
  BOOST_TEST(open_files() == before);
  const nn::StateDict loaded = load(folder / "model.h5");
  for (int i = 0; i < kShards; ++i)
    BOOST_TEST(loaded[static_cast<size_t>(i)].second.sum().item() == 10.0 * i);
}

// What another program puts in the place of a file that is not open is not taken for it.
BOOST_AUTO_TEST_CASE(a_file_that_was_replaced_is_refused) {
  TempFolder folder;
  save(folder / "model.h5", state(), {.max_shard_size = 40});
  const CheckpointReader file = open(folder / "model.h5");
  fs::path last;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (has(entry.path().string(), "-00140-of-")) last = entry.path();
  fs::copy_file(last, folder / "copy.h5");
  fs::rename(folder / "copy.h5", last);
  require_error<CheckpointError>([&] { file.read("t139"); }, last.filename().string(),
                                 "it was replaced or changed while it was read");
  BOOST_TEST(file.read("t138").sum().item() == 1380.0);
  fs::remove(last);
  require_error<CheckpointError>([&] { file.read("t139"); }, "there is no such file");
}

BOOST_AUTO_TEST_SUITE_END()
