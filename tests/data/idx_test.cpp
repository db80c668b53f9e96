// Reading IDX files, and refusing what is none.
#include <random>

#include <boost/test/unit_test.hpp>

#include <tenon/core/ops/reduction.h>
#include <tenon/core/tensor.h>
#include <tenon/data/idx.h>

#include "../files.h"
#include "packed.h"

BOOST_AUTO_TEST_SUITE(idx_test)

using namespace tenon;
using namespace tenon::data;

namespace {

constexpr const char *kImagesName = "train-images-idx3-ubyte",
                     *kLabelsName = "train-labels-idx1-ubyte";

// Two images of 2×3, and their labels.
const std::string images =
    idx_header(8, {2, 2, 3}) + std::string("\0\x01\x02\x03\x04\x05\xfa\xfb\xfc\xfd\xfe\xff", 12);
const std::string labels = idx_header(8, {2}) + "\x07\x09";

std::string refusal(const std::filesystem::path& path) {
  return error_of<DataError>([&] { read_idx(path); });
}
std::string refusal_of(const std::string& bytes) {
  TempFolder folder;
  write_bytes(folder / "file", bytes);
  const std::string text = refusal(folder / "file"),
                    start = "cannot read '" + (folder / "file").string() + "': ";
  return text.starts_with(start) ? text.substr(start.size()) : "does not name the file: " + text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_and_packed_files_read_alike) {
  TempFolder folder;
  for (bool packed : {false, true}) {
    write_bytes(folder / "file", packed ? gzip(images) : images);
    const Tensor x = read_idx(folder / "file");
    BOOST_TEST((x.shape() == Shape{2, 2, 3}));
    BOOST_TEST((x.dtype() == u8));
    BOOST_TEST(
        (x.to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5, 250, 251, 252, 253, 254, 255}));
  }
}

BOOST_AUTO_TEST_CASE(a_packed_file_may_have_several_parts) {
  TempFolder folder;
  write_bytes(folder / "file", gzip(images.substr(0, 20)) + gzip("") + gzip(images.substr(20)));
  BOOST_TEST(read_idx(folder / "file").to_vector<int>()[11] == 255);
}

BOOST_AUTO_TEST_CASE(every_element_type) {
  TempFolder folder;
  auto read = [&](uint8_t type, const std::string& values) {
    write_bytes(folder / "file", idx_header(type, {2}) + values);
    return read_idx(folder / "file");
  };
  BOOST_TEST((read(0x09, "\x7f\x80").to_vector<int>() == std::vector<int>{127, -128}));
  BOOST_TEST((read(0x0B, "\x01\x02\xff\xfe").to_vector<int>() == std::vector<int>{258, -2}));
  BOOST_TEST((read(0x0C, std::string("\x01\0\0\0\xff\xff\xff\xff", 8)).to_vector<int>() ==
              std::vector<int>{1 << 24, -1}));
  BOOST_TEST((read(0x0D, std::string("\x3f\x80\0\0\xc0\x40\0\0", 8)).to_vector<double>() ==
              std::vector<double>{1, -3}));
  const Tensor f = read(0x0E, std::string("\x3f\xf0\0\0\0\0\0\0\xc0\x08\0\0\0\0\0\0", 16));
  BOOST_TEST((f.dtype() == f64));
  BOOST_TEST((f.to_vector<double>() == std::vector<double>{1, -3}));
}

BOOST_AUTO_TEST_CASE(empty_and_scalar) {
  TempFolder folder;
  write_bytes(folder / "file", idx_header(8, {0, 4}));
  BOOST_TEST((read_idx(folder / "file").shape() == Shape{0, 4}));
  write_bytes(folder / "file", idx_header(8, {}) + "\x05");
  BOOST_TEST(read_idx(folder / "file").item<int>() == 5);
}

BOOST_AUTO_TEST_CASE(damaged_files_say_what_was_expected) {
  BOOST_TEST(has(refusal("/nowhere/x"), "cannot read '/nowhere/x': there is no such file"));
  BOOST_TEST(has(refusal("/tmp"), "it is a folder"));
  BOOST_TEST(has(refusal_of(""),
                 "cut off in the magic number: expected 4 bytes from position 0, found 0"));
  BOOST_TEST(has(refusal_of("PNG!"), "not an IDX file: it begins with 504e4721"));
  BOOST_TEST(
      has(refusal_of(idx_header(0x0A, {1}) + "x"), "not an IDX file: it begins with 00000a01"));
  BOOST_TEST(has(refusal_of(images.substr(0, 6)), "cut off in the header"));
  BOOST_TEST(has(refusal_of(images.substr(0, images.size() - 1)),
                 "cut off in the values: expected 12 bytes from position 16, found 11"));
  BOOST_TEST(has(refusal_of(images + "x"),
                 "it goes on after 28 bytes, where the values of shape (2, 2, 3) end"));
  BOOST_TEST(has(refusal_of(idx_header(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "x"),
                 "it has 9 dimensions; a tensor has at most 8"));
}

// Opening a FIFO to read it waits for somebody who writes.
BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_refused_at_once) {
  TempFolder folder;
  for (const auto& [what, path] : special_files(folder)) {
    BOOST_TEST(has(refusal(path), "cannot read '" + path.string() + "': it is "),
               what << ": " << refusal(path));
  }
}

BOOST_AUTO_TEST_CASE(a_packed_file_that_promises_more_than_memory_is_refused_by_name) {
  TempFolder folder;
  // 8 TiB of i64 are as many bytes as 8 GiB of packed ones may hold; the file has holes and takes
  // no room.
  const std::string start = gzip(idx_header(0x0E, {1 << 20, 1 << 20}));
  write_bytes(folder / "file", start);
  std::filesystem::resize_file(folder / "file", uint64_t{1} << 34);
  const std::string text = refusal(folder / "file");
  BOOST_TEST(has(text, "cannot read '" + (folder / "file").string() + "': "), text);
  write_bytes(folder / "file", gzip(images + std::string(size_t{1} << 22, '\0')));
  BOOST_TEST(has(refusal(folder / "file"), "it goes on after 28 bytes"));
}

BOOST_AUTO_TEST_CASE(absurd_sizes_are_refused_without_taking_memory) {
  BOOST_TEST(has(refusal_of(idx_header(8, {4'000'000'000, 28, 28}) + "x"),
                 "its shape (4000000000, 28, 28) would take 3136000000000 bytes, which a file "
                 "of 17 bytes cannot hold"));
  const uint32_t most = 0xFFFFFFFF;
  BOOST_TEST(has(refusal_of(idx_header(8, {most, most, most})), "absurdly large"));
  BOOST_TEST(has(refusal_of(idx_header(8, {0, most, most, most})), "absurdly large"));
  BOOST_TEST(has(refusal_of(gzip(idx_header(8, {4'000'000'000, 28, 28}))), "cannot hold"));
}

BOOST_AUTO_TEST_CASE(damaged_packed_files_are_refused) {
  const std::string packed = gzip(images);
  BOOST_TEST(has(refusal_of(packed + "more"), "something else follows the gzip data"));
  BOOST_TEST(has(refusal_of(packed + packed), "it goes on after 28 bytes"));
  for (size_t length = 2; length < packed.size(); ++length)
    BOOST_TEST(has(refusal_of(packed.substr(0, length)), "cut off"),
               "of " << packed.size() << " bytes, " << length);
  // The header's flags and time, and spare bits of the last byte, are not covered by gzip's
  // checksum.
  for (size_t at = 10; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    const std::string text = refusal_of(damaged);
    // A length that is wrong by then may be noticed before the checksum at the end is.
    BOOST_TEST(!text.starts_with("does not name the file"), "byte " << at << ": " << text);
  }
}

BOOST_AUTO_TEST_CASE(files_with_faults_are_read_or_refused_by_name) {
  TempFolder folder;
  const auto path = folder / "file";
  auto read = [&] { read_idx(path); };
  read_with_faults<DataError>(path, images, 2000, read);
  read_with_faults<DataError>(path, gzip(images), 2000, read);
  read_with_faults<DataError>(path, gzip(images.substr(0, 9)) + gzip(images.substr(9)), 2000, read);
}

BOOST_AUTO_TEST_CASE(a_folder_as_mnists) {
  TempFolder folder;
  write_bytes(folder / kImagesName, images);
  write_bytes(folder / (std::string(kLabelsName) + ".gz"), gzip(labels));
  const TensorDataset set = mnist(folder.path(), true);
  BOOST_TEST(set.size() == 2);
  BOOST_TEST((set.data().shape() == Shape{2, 1, 2, 3}));
  BOOST_TEST((set.data().dtype() == u8));
  BOOST_TEST((set.target().dtype() == i64));
  const Example second = set.get(1);
  BOOST_TEST((second.data.shape() == Shape{1, 2, 3}));
  BOOST_TEST(
      (second.data.to_vector<float>() ==
       std::vector<float>{250 / 255.f, 251 / 255.f, 252 / 255.f, 253 / 255.f, 254 / 255.f, 1}));
  BOOST_TEST(second.target.item<int>() == 9);

  const Batch normalized = mnist(folder.path(), true, {.pixels = {.mean = {0.5}, .std = {0.25}}})
                               .get_batch(std::vector<int64_t>{0});
  BOOST_TEST(normalized.data.to_vector<float>()[0] == -2);
}

BOOST_AUTO_TEST_CASE(folders_that_do_not_fit_together_are_refused) {
  TempFolder folder;
  auto refusal_of_folder = [&](const MnistOptions& options = {}) {
    return error_of<DataError>([&] { mnist(folder.path(), true, options); });
  };
  BOOST_TEST(
      has(error_of<DataError>([] { mnist("/nowhere", true); }), "there is no folder '/nowhere'"));
  BOOST_TEST(
      has(refusal_of_folder(),
          "there is neither 'train-images-idx3-ubyte' nor 'train-images-idx3-ubyte.gz' in folder"));
  write_bytes(folder / kImagesName, images);
  BOOST_TEST(has(refusal_of_folder(), "there is neither 'train-labels-idx1-ubyte' nor"));
  write_bytes(folder / kLabelsName, idx_header(8, {3}) + "abc");
  BOOST_TEST(has(refusal_of_folder(),
                 "it has 3 labels, and '" + (folder / kImagesName).string() + "' has 2 images"));
  write_bytes(folder / kLabelsName, idx_header(8, {2}) + "\x01\x0a");
  BOOST_TEST(has(refusal_of_folder(),
                 (folder / kLabelsName).string() +
                     "': label 10 of example 1 is out of range; there are 10 classes, from 0"));
  BOOST_TEST(refusal_of_folder({.classes = 47}) == "");
  write_bytes(folder / kLabelsName, images);
  BOOST_TEST(has(refusal_of_folder(), "expected u8 labels (N), found u8 of shape (2, 2, 3)"));
  write_bytes(folder / kImagesName, labels);
  BOOST_TEST(has(refusal_of_folder(), "expected u8 images (N, H, W), found u8 of shape (2,)"));
  write_bytes(folder / kImagesName, idx_header(8, {0, 28, 28}));
  write_bytes(folder / kLabelsName, idx_header(8, {0}));
  BOOST_TEST(has(refusal_of_folder(), "it holds no images"));
}

BOOST_AUTO_TEST_CASE(mnist_itself, *boost::unit_test::precondition(HasData{"mnist"})) {
  for (bool train : {true, false}) {
    const TensorDataset set = mnist(real_data("mnist"), train);
    BOOST_TEST((set.data().shape() == Shape{train ? 60'000 : 10'000, 1, 28, 28}));
    std::vector<int> count(10);
    for (int label : set.target().to_vector<int>()) ++count[label];
    for (int label = 0; label < 10; ++label) BOOST_TEST(count[label] > (train ? 5'000 : 800));
    // The mean that everybody normalizes by.
    double sum = 0;
    for (uint8_t pixel : set.data().to_vector<uint8_t>()) sum += pixel;
    BOOST_TEST(std::abs(sum / static_cast<double>(set.data().numel()) / 255 - 0.1307) < 0.003);
  }
}

BOOST_AUTO_TEST_CASE(fashion_mnist_sample,
                     *boost::unit_test::precondition(HasData{"fashion-mnist-sample"})) {
  BOOST_TEST(mnist(real_data("fashion-mnist-sample"), true).size() == 3115);
  BOOST_TEST(mnist(real_data("fashion-mnist-sample"), false).size() == 500);
}

BOOST_AUTO_TEST_SUITE_END()
