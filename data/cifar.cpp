#include <tenon/data/cifar.h>

#include <cstring>
#include <fstream>

#include <tenon/core/error.h>
#include <tenon/data/byte_source.h>
#include <tenon/data/host_tensor.h>
#include <tenon/data/labels.h>

namespace tenon::data {
namespace {

constexpr size_t image_bytes = 3 * 32 * 32, record_bytes = 1 + image_bytes;
constexpr int64_t classes = 10;
constexpr int train_files = 5;

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, bool train) {
  if (!train) return {find_plain_or_gz(folder, "test_batch.bin")};
  std::vector<std::filesystem::path> files{find_plain_or_gz(folder, "data_batch_1.bin")};
  bool gap = false;
  for (int i = 2; i <= train_files; ++i) {
    const std::string name = "data_batch_" + std::to_string(i) + ".bin";
    const auto path = look_for_plain_or_gz(folder, name);
    if (!path.empty() && gap)
      throw DataError("'" + path.string() + "' is there, but not data_batch_" + std::to_string(files.size() + 1) +
                      ".bin in front of it");
    path.empty() ? void(gap = true) : files.push_back(path);
  }
  return files;
}

// Adds the records of a file.
void read_records(const std::filesystem::path& path, std::vector<uint8_t>& labels, std::vector<uint8_t>& pixels) {
  ByteSource source(path);
  const size_t before = labels.size();
  uint8_t record[record_bytes];
  while (const size_t count = source.read(record, record_bytes)) {
    if (count != record_bytes)
      source.fail("cut off in record " + std::to_string(labels.size() - before) + ": expected " + std::to_string(record_bytes) +
                  " bytes, found " + std::to_string(count));
    if (record[0] >= classes)
      source.fail("label " + std::to_string(record[0]) + " of record " + std::to_string(labels.size() - before) +
                  " is out of range; there are 10 classes, from 0");
    labels.push_back(record[0]);
    pixels.insert(pixels.end(), record + 1, record + record_bytes);
  }
  if (labels.size() == before) source.fail("it holds no images");
}

}  // namespace

TensorDataset cifar10(const std::filesystem::path& folder, bool train, const Cifar10Options& options) {
  std::vector<uint8_t> labels, pixels;
  for (const auto& path : files_of(folder, train)) read_records(path, labels, pixels);
  HostTensor images = make_host_tensor({static_cast<int64_t>(labels.size()), 3, 32, 32}, DType::u8);
  std::memcpy(images.values, pixels.data(), pixels.size());
  return TensorDataset(images.tensor, labels_from_bytes(labels, classes, folder)).convert(options.pixels);
}

std::vector<std::string> cifar10_classes(const std::filesystem::path& folder) {
  const auto path = folder / "batches.meta.txt";
  std::ifstream file(path);
  if (!file) throw DataError("cannot read '" + path.string() + "': there is no such file, or it may not be read");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != static_cast<size_t>(classes))
    throw DataError("cannot read '" + path.string() + "': expected 10 names of classes, found " + std::to_string(names.size()));
  return names;
}

}  // namespace tenon::data
