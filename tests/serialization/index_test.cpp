// The index, by which a checkpoint is read without HDF5: it says what the HDF5 data say, and
// nothing in it is believed.
#include <cstdlib>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/training_checkpoint.h>

#include "sealed.h"
#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(index_test)

using namespace tenon;
using nn::StateDict;
using test::require_error;

namespace {

// In place of the reader's process is one that ends at once.
class NoReader {
 public:
  NoReader() { setenv("TENON_HDF5_READER", "/bin/false", 1); }
  ~NoReader() { unsetenv("TENON_HDF5_READER"); }
  NoReader(const NoReader&) = delete;
};

std::string save_every_kind(const std::filesystem::path& path) {
  StateDict all;
  for (DType dtype : {f32, f64, f16, bf16, i64, i32, u8, boolean})
    all.set("a." + std::string(name_of(dtype)), ones({2, 3}).to(dtype));
  all.set("scalar", full({}, 7));
  all.set("none", zeros({0, 5}));
  all.set("large", arange(0, 100'000));
  all.set("name\nof two lines", ones({1}));
  save(path, all);
  return read_bytes(path);
}

// What is said of a file in which `change` has changed the bytes of the index; w is its tensor.
std::string refusal_of(
    const std::function<void(std::string& bytes, size_t index, size_t w)>& change) {
  TempFolder folder;
  save(folder / "x.h5", StateDict{{"other", ones({4})}, {"w", ones({4})}});
  std::string bytes = read_bytes(folder / "x.h5");
  const size_t index = number_at(bytes, 464);
  const size_t w = bytes.rfind('w', number_at(bytes, 40)) - 8 - 24;  // one dimension, and the entry
  change(bytes, index, w);
  reseal(bytes);
  write_bytes(folder / "x.h5", bytes);
  const NoReader nothing_else;
  const std::string text = error_of<CheckpointError>([&] { load(folder / "x.h5"); });
  BOOST_TEST(has(text, "cannot load checkpoint '" + (folder / "x.h5").string() + "': "));
  BOOST_TEST(error_of<CheckpointError>([&] { inspect(folder / "x.h5"); }) == text);
  return text;
}

template <class T>
void put(std::string& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_index_says_what_the_hdf5_data_say) {
  TempFolder folder;
  const std::string bytes = save_every_kind(folder / "new.h5");
  write_bytes(folder / "old.h5", without_index(bytes));
  const StateDict by_index = load(folder / "new.h5"), by_process = load(folder / "old.h5");
  BOOST_REQUIRE(by_index.size() == by_process.size());
  for (size_t i = 0; i < by_index.size(); ++i) {
    BOOST_TEST(by_index[i].first == by_process[i].first);
    BOOST_TEST((by_index[i].second.dtype() == by_process[i].second.dtype()));
    BOOST_TEST((by_index[i].second.shape() == by_process[i].second.shape()));
    BOOST_TEST(
        (by_index[i].second.to_vector<double>() == by_process[i].second.to_vector<double>()));
  }
  BOOST_TEST(!inspect(folder / "old.h5").unverified);
}

BOOST_AUTO_TEST_CASE(groups_and_wrappers_are_in_the_index) {
  TempFolder folder;
  save(folder / "new.h5", Checkpoint{.epoch = 3, .user = {{"note", "text"}, {"t", ones({3})}}});
  write_bytes(folder / "old.h5", without_index(read_bytes(folder / "new.h5")));
  for (const char* name : {"new.h5", "old.h5"}) {
    Checkpoint run;
    load(folder / name, run);
    BOOST_TEST(run.epoch == 3);
    BOOST_TEST(run.user.at("note").text() == "text");
    BOOST_TEST(run.user.at("t").tensor().numel() == 3);
    const CheckpointInfo info = inspect(folder / name);
    BOOST_TEST(info.parts.size() == 3u);
    BOOST_TEST((info.wrappers == inspect(folder / "new.h5").wrappers));
  }
}

// HDF5 is not even started: neither in this process nor in another one.
BOOST_AUTO_TEST_CASE(hdf5_data_are_not_parsed_where_there_is_an_index) {
  TempFolder folder;
  std::string bytes = save_every_kind(folder / "x.h5");
  for (size_t at = 512; at < 4096; ++at)  // the superblock, and the first headers
    if (bytes[at] != 0) bytes[at] = '\xff';
  reseal(bytes);
  write_bytes(folder / "x.h5", bytes);
  const NoReader nothing_else;
  BOOST_TEST(load(folder / "x.h5").at("large").numel() == 100'000);
  BOOST_TEST(inspect(folder / "x.h5").tensors.size() == 12u);
}

BOOST_AUTO_TEST_CASE(a_process_that_crashes_on_hdf5_data_is_an_error_that_names_the_file) {
  TempFolder folder;
  save(folder / "x.h5", StateDict{{"w", ones({4})}});
  std::string bytes = without_index(read_bytes(folder / "x.h5"));
  write_bytes(folder / "x.h5", bytes);
  write_bytes(folder / "reader", "#!/bin/sh\nkill -SEGV $$\n");
  std::filesystem::permissions(folder / "reader", std::filesystem::perms::owner_all);
  setenv("TENON_HDF5_READER", (folder / "reader").c_str(), 1);
  const std::string text = error_of<CheckpointError>([&] { load(folder / "x.h5"); });
  unsetenv("TENON_HDF5_READER");
  BOOST_TEST(has(text,
                 "x.h5': the process that reads it, because it has no index that this version "
                 "of Tenon reads, was ended by a signal: Segmentation fault"),
             text);
}

BOOST_AUTO_TEST_CASE(the_hdf5_data_are_read_where_the_index_is_of_a_later_version) {
  TempFolder folder;
  save(folder / "x.h5", StateDict{{"w", ones({4})}});
  std::string bytes = read_bytes(folder / "x.h5");
  put(bytes, number_at(bytes, 464), uint32_t{2});
  reseal(bytes);
  write_bytes(folder / "x.h5", bytes);
  BOOST_TEST(load(folder / "x.h5").at("w").numel() == 4);
}

BOOST_AUTO_TEST_CASE(an_index_that_lies_is_refused) {
  const auto with_field = [](size_t at, uint64_t value) {
    return refusal_of([=](std::string& bytes, size_t, size_t) { put(bytes, at, value); });
  };
  const char* place = "its index is not where its header says";
  for (uint64_t at : {uint64_t{511}, uint64_t{1} << 40, ~uint64_t{0}})
    BOOST_TEST(has(with_field(464, at), place));
  for (uint64_t count : {uint64_t{1} << 40, ~uint64_t{0}})
    BOOST_TEST(has(with_field(472, count), place));
  for (uint64_t count : {uint64_t{0}, uint64_t{23}, uint64_t{30}})
    BOOST_TEST(has(with_field(472, count), "its index is damaged: it ends too early"));

  const auto in_head = [](size_t at, uint32_t value) {
    return refusal_of(
        [=](std::string& bytes, size_t index, size_t) { put(bytes, index + at, value); });
  };
  BOOST_TEST(has(in_head(0, 0), "it has no version"));
  BOOST_TEST(has(in_head(4, 1u << 30), "its index is damaged: it ends too early"));
  BOOST_TEST(has(in_head(8, ~0u), "its index is damaged"));
  BOOST_TEST(has(in_head(16, ~0u), "its index is damaged: it ends too early"));
  BOOST_TEST(has(in_head(16, 1), "its index is damaged: it does not end where it should"));

  const auto in_w = [](size_t at, auto value) {
    return refusal_of([=](std::string& bytes, size_t, size_t w) { put(bytes, w + at, value); });
  };
  BOOST_TEST(has(in_w(0, uint32_t{1}), "its index is damaged: a tensor is in no group"));
  BOOST_TEST(has(in_w(4, ~uint32_t{0}), "its index is damaged: it ends too early"));
  BOOST_TEST(has(in_w(8, uint8_t{8}), "tensor 'w': its type has the number 8"));
  BOOST_TEST(has(in_w(9, uint8_t{200}), "its index is damaged: it ends too early"));
  for (uint64_t offset :
       {uint64_t{0}, uint64_t{511}, uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{15}})
    BOOST_TEST(has(in_w(16, offset),
                   "tensor 'w': its values, 16 bytes for its shape (4,), are "
                   "outside the file"));
  BOOST_TEST(has(in_w(24, uint64_t{100'000}), "outside the file"));
  BOOST_TEST(
      has(in_w(24, uint64_t{1} << 60), "its shape (1152921504606846976,) is absurdly large"));
  BOOST_TEST(has(in_w(24, ~uint64_t{0}), "tensor 'w': a dimension is absurdly large"));
  BOOST_TEST(has(in_w(32, '/'), "tensor '/': its name is not one of a tensor: HDF5 takes '/'"));
  BOOST_TEST(has(in_w(32, '@'), "its name is not one of a tensor: names that start with '@'"));
}

// Two tensors that have the same values would take more memory than the file has bytes.
BOOST_AUTO_TEST_CASE(values_are_no_more_than_the_file_holds) {
  TempFolder folder;
  StateDict all{{"large", ones({2000})}};
  for (int i = 0; i < 8; ++i) all.set("t" + std::to_string(i), ones({4}));
  save(folder / "x.h5", all);
  std::string bytes = read_bytes(folder / "x.h5");
  const size_t end = number_at(bytes, 40), large = bytes.rfind("large", end) - 8 - 24;
  for (int i = 0; i < 8; ++i) {
    const size_t small = bytes.rfind("t" + std::to_string(i), end) - 8 - 24;
    put(bytes, small + 16, number_at(bytes, large + 16));
    put(bytes, small + 24, uint64_t{2000});
  }
  reseal(bytes);
  write_bytes(folder / "x.h5", bytes);
  require_error<CheckpointError>([&] { load(folder / "x.h5"); },
                                 "its values overlap those of other tensors");
}

BOOST_AUTO_TEST_SUITE_END()
