// Reading CIFAR-10's binary records.
#include <boost/test/unit_test.hpp>

#include <tenon/core/tensor.h>
#include <tenon/data/cifar.h>

#include "../files.h"
#include "packed.h"

BOOST_AUTO_TEST_SUITE(cifar_test)

using namespace tenon;
using namespace tenon::data;

namespace {

// A record whose red, green and blue planes have one value each.
std::string record(char label, char red, char green, char blue) {
  return label + std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
}
std::string refusal(const TempFolder& folder, bool train = true) {
  return error_of<DataError>([&] { cifar10(folder.path(), train); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_and_packed_batches_in_order) {
  TempFolder folder;
  write_bytes(folder / "data_batch_1.bin", record(3, 1, 2, 3) + record(9, 4, 5, 6));
  write_bytes(folder / "data_batch_2.bin.gz", gzip(record(0, 7, 8, 9)));
  write_bytes(folder / "test_batch.bin.gz", gzip(record(5, 0, 0, 0)));
  const TensorDataset train = cifar10(folder.path(), true);
  BOOST_TEST((train.data().shape() == Shape{3, 3, 32, 32}));
  BOOST_TEST((train.target().to_vector<int>() == std::vector<int>{3, 9, 0}));
  for (int channel = 0; channel < 3; ++channel)
    BOOST_TEST(train.data()[2][channel][31][31].item<int>() == 7 + channel);
  BOOST_TEST(cifar10(folder.path(), false).size() == 1);

  const Batch batch =
      cifar10(folder.path(), true, {.pixels = {.mean = {0, 0.5, 1}, .std = {1, 2, 0.5}}})
          .get_batch(std::vector<int64_t>{1});
  BOOST_TEST(batch.data[0][0][0][0].item<float>() == static_cast<float>(4 / 255.));
  BOOST_TEST(batch.data[0][1][0][0].item<float>() == static_cast<float>((5 / 255. - 0.5) / 2));
  BOOST_TEST(batch.data[0][2][0][0].item<float>() == static_cast<float>((6 / 255. - 1) / 0.5));
}

BOOST_AUTO_TEST_CASE(damaged_folders_are_refused) {
  TempFolder folder;
  BOOST_TEST(has(refusal(folder),
                 "there is neither 'data_batch_1.bin' nor 'data_batch_1.bin.gz' in folder"));
  BOOST_TEST(has(refusal(folder, false), "'test_batch.bin'"));
  write_bytes(folder / "data_batch_1.bin", record(1, 1, 1, 1).substr(1));
  BOOST_TEST(has(refusal(folder),
                 "data_batch_1.bin': cut off in record 0: expected 3073 bytes, found 3072"));
  write_bytes(folder / "data_batch_1.bin", record(1, 1, 1, 1) + "x");
  BOOST_TEST(has(refusal(folder), "cut off in record 1: expected 3073 bytes, found 1"));
  write_bytes(folder / "data_batch_1.bin", record(1, 1, 1, 1) + record(10, 1, 1, 1));
  BOOST_TEST(
      has(refusal(folder), "label 10 of record 1 is out of range; there are 10 classes, from 0"));
  write_bytes(folder / "data_batch_1.bin", "");
  BOOST_TEST(has(refusal(folder), "it holds no images"));
  write_bytes(folder / "data_batch_1.bin", record(1, 1, 1, 1));
  write_bytes(folder / "data_batch_3.bin", record(1, 1, 1, 1));
  BOOST_TEST(
      has(refusal(folder), "data_batch_3.bin' is there, but not data_batch_2.bin in front of it"));
  write_bytes(folder / "data_batch_2.bin.gz", gzip(record(1, 1, 1, 1)).substr(0, 20));
  BOOST_TEST(has(refusal(folder), "data_batch_2.bin.gz': the gzip data is cut off"));
}

BOOST_AUTO_TEST_CASE(files_with_faults_are_read_or_refused_by_name) {
  TempFolder folder;
  const auto path = folder / "test_batch.bin";
  auto read = [&] { cifar10(folder.path(), false); };
  const std::string whole = record(3, 1, 2, 3) + record(9, 4, 5, 6);
  read_with_faults<DataError>(path, whole, 500, read);
  read_with_faults<DataError>(path, gzip(whole), 1000, read);
}

BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_refused_at_once) {
  TempFolder folder;
  for (const auto& [what, path] : special_files(folder)) {
    for (const char* name : {"data_batch_1.bin", "batches.meta.txt"}) {
      std::filesystem::remove(folder / name);
      std::filesystem::create_symlink(path, folder / name);
    }
    BOOST_TEST(has(refusal(folder), "data_batch_1.bin': it is "), what << ": " << refusal(folder));
    BOOST_TEST(has(error_of<DataError>([&] { cifar10_classes(folder.path()); }),
                   "batches.meta.txt': it is "),
               what);
  }
}

BOOST_AUTO_TEST_CASE(names_of_classes) {
  TempFolder folder;
  BOOST_TEST(
      has(error_of<DataError>([&] { cifar10_classes(folder.path()); }), "there is no such file"));
  write_bytes(folder / "batches.meta.txt", "a\nb\r\nc\n");
  BOOST_TEST(has(error_of<DataError>([&] { cifar10_classes(folder.path()); }),
                 "expected 10 names of classes, found 3"));
  write_bytes(folder / "batches.meta.txt", "a\nb\r\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  BOOST_TEST(cifar10_classes(folder.path())[1] == "b");
}

BOOST_AUTO_TEST_CASE(cifar10_sample, *boost::unit_test::precondition(HasData{"cifar10-sample"})) {
  const TensorDataset train = cifar10(real_data("cifar10-sample"), true),
                      test = cifar10(real_data("cifar10-sample"), false);
  BOOST_TEST(train.size() == 5000);
  BOOST_TEST(test.size() == 1000);
  std::vector<int> count(10);
  for (int label : train.target().to_vector<int>()) ++count[label];
  BOOST_TEST((count == std::vector<int>(10, 500)));
  BOOST_TEST(cifar10_classes(real_data("cifar10-sample"))[9] == "truck");
}

BOOST_AUTO_TEST_SUITE_END()
