// Files of which single tensors are read, and damage that is noticed where it is.
#include <fstream>
#include <random>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_reader.h>

#include "serialization/numbered_tensors.h"
#include "support/expect.h"
#include "weights.h"

BOOST_AUTO_TEST_SUITE(single_tensors_test)

using namespace tenon;
using nn::StateDict;
using tenon::test::kSharded, tenon::test::numbered_tensors, tenon::test::refusal;
using tenon::test::require_error;
namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(single_tensors_are_read_from_every_format) {
  for (const char* name : {"net.safetensors", "net.npz", "net.h5", "net.pt"}) {
    BOOST_TEST_CONTEXT(name) {
      const StateDict all = load(test::weights_file(name));
      const CheckpointReader file = tenon::open(test::weights_file(name));
      BOOST_REQUIRE(file.tensors().size() == all.size());
      for (size_t i = all.size(); i-- > 0;) {
        const auto& [key, values] = all[i];
        BOOST_TEST(file.tensors()[i].key == key);
        BOOST_TEST((file.at(key).shape == values.shape()));
        Tensor read = file.read(key);
        BOOST_TEST((read.dtype() == values.dtype()));
        BOOST_TEST((read.to_vector<double>() == values.to_vector<double>()));
        read.fill_(0);  // belongs to the caller alone
        BOOST_TEST((file.read(key).to_vector<double>() == values.to_vector<double>()));
      }
    }
  }
  TempFolder folder;
  save(folder / "model.h5", numbered_tensors(1), kSharded);
  const CheckpointReader file = tenon::open(folder / "model.h5");
  save(folder / "model.h5", numbered_tensors(2), kSharded);  // what is open stays what it was
  BOOST_TEST(file.contains("d"));
  BOOST_TEST(file.read("d").to_vector<float>()[1499] == 1);
  require_error<StateDictError>([&] { file.read("e"); }, "model.h5' has no tensor 'e' among its 4");
}

// Damage in one tensor does not prevent that others are read; a load of the whole is refused.
BOOST_AUTO_TEST_CASE(a_tensor_is_compared_with_its_own_checksums) {
  TempFolder folder;
  const fs::path path = folder / "model.h5";
  const Tensor first = arange(0, 100'000), second = arange(100'000, 300'000);
  save(path, StateDict{{"first", first}, {"second", second}});
  std::string bytes = read_bytes(path);
  bytes[bytes.size() - 100'000] ^= 1;  // of `second`
  write_bytes(path, bytes);
  const CheckpointReader file = tenon::open(path);
  BOOST_TEST((file.read("first").to_vector<double>() == first.to_vector<double>()));
  require_error<CheckpointError>([&] { file.read("second"); }, path.string().c_str(),
                                 "its checksum does not match");
  BOOST_TEST(has(refusal(path), "its checksum does not match"));
  require_error<CheckpointError>([&] { load(path, {.only = "^first$"}); },
                                 "its checksum does not match");
  require_error<CheckpointError>([&] { inspect(path); }, "its checksum does not match");
}

// Every byte counts in a file of many pieces, too.
BOOST_AUTO_TEST_CASE(a_changed_bit_anywhere_in_a_large_file_is_noticed) {
  TempFolder folder;
  const fs::path path = folder / "model.h5";
  save(path, StateDict{{"a", full({70'000}, 1)}, {"b", full({9}, 2)}, {"c", full({90'000}, 3)}});
  const std::string whole = read_bytes(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::mt19937 random(4);
  size_t believed = 0;
  const auto put = [&](size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte).flush();
  };
  for (int i = 0; i < 300; ++i) {
    // Half of them at the ends, where header and checksums are.
    const size_t at = i % 4 == 0   ? random() % 512
                      : i % 4 == 1 ? whole.size() - 1 - random() % 200
                                   : random() % whole.size();
    put(at, static_cast<char>(whole[at] ^ (1 << random() % 8)));
    believed += refusal(path).empty();
    put(at, whole[at]);
  }
  BOOST_TEST(believed == 0u);
  BOOST_TEST(refusal(path) == "");
}

BOOST_AUTO_TEST_SUITE_END()
