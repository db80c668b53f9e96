// HDF5, whose library crashes on crafted files: those of other programs, and checkpoints of Tenon's
// without an index. Changes keep the length of the file, and all checksums are right.
#include <filesystem>
#include <map>
#include <random>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/training_checkpoint.h>

#include "data/packed.h"
#include "files.h"
#include "fuzz/hdf5_sums.h"
#include "fuzz/targets.h"

BOOST_AUTO_TEST_SUITE(hdf5_test)

using namespace tenon;
using namespace tenon::test::fuzz;

namespace {

// An input is a list of changes, six bytes each: where, and to what. It is applied to the file that
// its first byte chooses.
std::string applied(const std::vector<std::string>& files,
                    const std::vector<std::vector<Hdf5Sum>>& sums, std::string_view changes,
                    size_t begin) {
  const size_t which = changes.empty() ? 0 : static_cast<unsigned char>(changes[0]) % files.size();
  std::string bytes = files[which];
  for (size_t at = 1; at + 6 <= changes.size(); at += 6) {
    uint32_t where = 0;
    std::memcpy(&where, changes.data() + at, 4);
    // What HDF5 parses stands in its structures; values may be anything.
    const Hdf5Sum& sum = sums[which][where % sums[which].size()];
    const size_t length = sum.end - sum.begin, place = sum.begin + (where >> 8) % length;
    const bool wide = changes[at + 4] & 1;
    if (place < begin) continue;
    bytes[place] = static_cast<char>(changes[at + 5]);
    if (wide && place + 1 < sum.end) bytes[place + 1] = static_cast<char>(changes[at + 4]);
  }
  make_hdf5_sums_right(bytes, sums[which]);
  return bytes;
}

std::vector<std::string> lists_of_changes() {
  std::vector<std::string> lists;
  std::mt19937 random(1);
  for (int i = 0; i < 64; ++i) {
    std::string list(1, static_cast<char>(i));
    for (size_t n = 6 * (random() % 3 + 1); n-- > 0;) list += static_cast<char>(random());
    lists.push_back(std::move(list));
  }
  return lists;
}

struct Files {
  explicit Files(std::vector<std::string> all) : files(std::move(all)) {
    for (const std::string& file : files) {
      sums.push_back(find_hdf5_sums(file));
      BOOST_REQUIRE(sums.back().size() > 3);
    }
  }
  std::vector<std::string> files;
  std::vector<std::vector<Hdf5Sum>> sums;
};

// h5py's file has structures of version 0, without checksums: it is made with those of version 2.
std::string file_of_another_program() {
  TempFolder folder;
  save(folder / "x.h5", nn::StateDict{{"a", ones({4})}, {"b", zeros({2, 3})}});
  return read_bytes(folder / "x.h5").substr(512);
}
std::vector<std::string> checkpoints() {
  TempFolder folder;
  nn::StateDict many;
  for (int i = 0; i < 20; ++i) many.set("layer." + std::to_string(i), ones({i, 2}));
  save(folder / "few.h5", nn::StateDict{{"a", ones({4})}, {"b", zeros({2, 3})}});
  save(folder / "many.h5", many);
  save(folder / "run.h5", Checkpoint{.epoch = 1, .user = {{"t", ones({3})}}});
  std::vector<std::string> files;
  for (const char* name : {"few.h5", "many.h5", "run.h5"})
    files.push_back(without_index(read_bytes(folder / name)));
  return files;
}

// As it is, or behind a block of another program.
bool foreign_is_refused(std::string_view changes) {
  static const Files from({file_of_another_program()});
  std::string bytes = applied(from.files, from.sums, changes, 0);
  if (!changes.empty() && (changes[0] & 1)) bytes.insert(0, std::string(512, 'x'));
  return load_is_refused(bytes);
}
bool checkpoint_is_refused(std::string_view changes) {
  static const Files from(checkpoints());
  std::string bytes = applied(from.files, from.sums, changes, 512);
  reseal(bytes);
  return load_is_refused(bytes);
}

Target foreign() {
  return {.name = "hdf5",
          .one_input = foreign_is_refused,
          .seeds = lists_of_changes(),
          .seeds_are_whole = false,
          .runs = 200};
}
Target checkpoint() {
  return {.name = "checkpoint_hdf5",
          .one_input = checkpoint_is_refused,
          .seeds = lists_of_changes(),
          .seeds_are_whole = false,
          .runs = 200};
}
// Files of h5py, without checksums.
Target written_by_h5py() {
  return {.name = "h5py",
          .one_input = load_is_refused,
          .seeds = reference_files({"net.h5", "keras.h5", "layouts.h5", "dtypes.h5"}),
          .words = {"TREE", "HEAP", "SNOD", "OHDR", std::string(8, '\xff'), std::string(8, '\0')},
          .runs = 200};
}

}  // namespace

// Files that others made to break HDF5, or to test it: docs/contributing.md says where from.
BOOST_AUTO_TEST_CASE(public_files, *boost::unit_test::precondition(HasData{"hdf5"})) {
  size_t files = 0, read = 0, sealed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(real_data("hdf5"))) {
    BOOST_TEST_CONTEXT(entry.path()) {
      ++files;
      const std::string bytes = read_bytes(entry.path());
      BOOST_REQUIRE_NO_THROW(read += !load_is_refused(bytes));
      std::string checkpoint = std::string(512, '\0') + bytes;
      seal(checkpoint);
      BOOST_REQUIRE_NO_THROW(sealed += !load_is_refused(checkpoint));
    }
  }
  BOOST_TEST_MESSAGE(files << " files: " << read << " read as they are, " << sealed
                           << " with Tenon's checksums");
  BOOST_TEST(files > 0u);
}

BOOST_AUTO_TEST_CASE(files_of_other_programs) { try_inputs(foreign()); }
BOOST_AUTO_TEST_CASE(files_of_h5py) { try_inputs(written_by_h5py()); }
BOOST_AUTO_TEST_CASE(checkpoints_without_an_index) { try_inputs(checkpoint()); }

BOOST_AUTO_TEST_SUITE_END()
