// A damaged checkpoint is refused, whatever the damage, before anything in it is believed.
#include <random>

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/core/tensor.h>
#include <tenon/modules/linear.h>
#include <tenon/serialization/checkpoint.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(damage_test)

using namespace tenon;

namespace {

std::string small_checkpoint(const TempFolder& folder) {
  save(folder / "small.h5", nn::Linear(5, 3));
  return read_bytes(folder / "small.h5");
}

bool is_refused(const std::filesystem::path& path) {
  return !error_of<CheckpointError>([&] { inspect(path); }).empty();
}

std::string refusal(const std::filesystem::path& path) {
  return error_of<CheckpointError>([&] { load(path); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  TempFolder folder;
  const std::string whole = small_checkpoint(folder);
  const std::string path = folder / "cut.h5";
  size_t believed = 0;
  write_bytes(path, whole);
  for (size_t length = whole.size(); length-- > 0;) {
    BOOST_REQUIRE(truncate(path.c_str(), static_cast<off_t>(length)) == 0);
    believed += !is_refused(path);
  }
  BOOST_TEST(believed == 0u);
  BOOST_TEST(has(refusal(path), "the file is empty"));
  write_bytes(path, whole.substr(0, 100));
  BOOST_TEST(has(refusal(path), "cut off: it has 100 bytes, and its header alone has 512"));
  write_bytes(path, whole.substr(0, 700));
  BOOST_TEST(has(refusal(path), "cannot load checkpoint '" + path +
                                    "': the file is cut off: it has 700 bytes instead of " +
                                    std::to_string(whole.size())));
}

BOOST_AUTO_TEST_CASE(random_bit_flips_are_refused) {
  TempFolder folder;
  const std::string whole = small_checkpoint(folder);
  const std::string path = folder / "flipped.h5";
  write_bytes(path, whole);
  const int file = open(path.c_str(), O_WRONLY);
  BOOST_REQUIRE(file >= 0);
  std::mt19937 random(1);
  size_t believed = 0;
  for (int i = 0; i < 10'000; ++i) {
    const size_t at = random() % whole.size();
    const char flipped = static_cast<char>(whole[at] ^ (1 << random() % 8));
    BOOST_REQUIRE(pwrite(file, &flipped, 1, static_cast<off_t>(at)) == 1);
    believed += !is_refused(path);
    BOOST_REQUIRE(pwrite(file, &whole[at], 1, static_cast<off_t>(at)) == 1);
  }
  close(file);
  BOOST_TEST(believed == 0u);
  BOOST_TEST(!is_refused(path));  // as it was
}

BOOST_AUTO_TEST_CASE(every_bit_of_the_header_counts) {
  TempFolder folder;
  const std::string whole = small_checkpoint(folder);
  const std::string path = folder / "flipped.h5";
  size_t believed = 0;
  for (size_t bit = 0; bit < 512 * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_bytes(path, damaged);
    believed += !is_refused(path);
  }
  BOOST_TEST(believed == 0u);
}

BOOST_AUTO_TEST_CASE(bytes_added_or_moved_are_refused) {
  TempFolder folder;
  const std::string whole = small_checkpoint(folder);
  const std::string path = folder / "other.h5";
  write_bytes(path, whole + '\0');
  BOOST_TEST(has(refusal(path), "too long"));
  write_bytes(path, whole + whole);
  BOOST_TEST(has(refusal(path), "something was added"));
  write_bytes(path, whole.substr(512));
  BOOST_TEST(load(path).size() == 2u);  // an HDF5 file as any other, without a block in front
  std::string swapped = whole;
  std::swap(swapped[600], swapped[whole.size() - 1]);
  std::swap(swapped[601], swapped[whole.size() - 2]);
  write_bytes(path, swapped);
  BOOST_TEST((swapped == whole || has(refusal(path), "its checksum does not match")));
}

BOOST_AUTO_TEST_CASE(other_files_are_named_for_what_they_are) {
  TempFolder folder;
  auto refuse = [&](const std::string& bytes) {
    write_bytes(folder / "file", bytes);
    return refusal(folder / "file");
  };
  BOOST_TEST(has(refuse("hello"), "it does not start like a checkpoint"));
  BOOST_TEST(has(refuse(std::string("PK\x03\x04", 4) + std::string(600, 'x')),
                 "its zip archive is damaged: it is cut off, or something was added"));
  BOOST_TEST(has(refuse(std::string("\x10\0\0\0\0\0\0\0{\"a\":1}", 15)), "safetensors"));
  BOOST_TEST(has(refusal(folder / "nowhere.h5"), "nowhere.h5': there is no such file"));
  BOOST_TEST(has(refusal(""), "cannot load checkpoint '': the path is empty"));
  BOOST_TEST(has(refusal(folder.path()), "it is a folder"));
  BOOST_TEST(has(refusal("/dev/null"), "it is not a regular file"));
  BOOST_REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  BOOST_TEST(has(refusal(folder / "fifo"), "it is not a regular file"));
  BOOST_TEST(has(error_of<CheckpointError>([&] { save(folder / "fifo", nn::StateDict()); }),
                 "it is not a regular file"));

  nn::Linear model(2, 2);
  BOOST_TEST(has(error_of<CheckpointError>([&] { load(folder / "nowhere.h5", model); }),
                 "there is no such file"));
}

BOOST_AUTO_TEST_CASE(a_tool_that_changes_a_checkpoint_is_noticed) {
  TempFolder folder;
  save(folder / "model.h5", nn::StateDict{{"w", ones({4})}});
  const hid_t file = H5Fopen((folder / "model.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  BOOST_REQUIRE(file >= 0);
  const hid_t dataset = H5Dopen2(file, "w", H5P_DEFAULT);
  const float value[4] = {1, 1, 1, 2};
  BOOST_TEST(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0);
  H5Dclose(dataset);
  H5Fclose(file);
  BOOST_TEST(has(refusal(folder / "model.h5"), "changed by another program"));
}

BOOST_AUTO_TEST_SUITE_END()
