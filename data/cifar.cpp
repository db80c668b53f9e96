#include <cstring>
#include <new>
#include <sstream>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/byte_source.h>
#include <tenon/data/cifar.h>
#include <tenon/data/labels.h>

namespace tenon::data {
namespace {

constexpr size_t kImageBytes = 3 * 32 * 32, kRecordBytes = 1 + kImageBytes;
constexpr int64_t kClasses = 10;
constexpr int kTrainFiles = 5;
constexpr size_t kMaxText = size_t{1} << 16;  // how many bytes of the names of classes are read

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, bool train) {
  if (!train) return {find_plain_or_gz(folder, "test_batch.bin")};
  std::vector<std::filesystem::path> files{find_plain_or_gz(folder, "data_batch_1.bin")};
  bool gap = false;
  for (int i = 2; i <= kTrainFiles; ++i) {
    const auto path = look_for_plain_or_gz(folder, fmt::format("data_batch_{}.bin", i));
    if (!path.empty() && gap)
      throw DataError(fmt::format("'{}' is there, but not data_batch_{}.bin in front of it",
                                  printable(path.native()), files.size() + 1));
    path.empty() ? void(gap = true) : files.push_back(path);
  }
  return files;
}

// Adds the records of a file. The file does not say how many there are, and a packed file may
// contain more than fit into memory.
void read_records(const std::filesystem::path& path, std::vector<uint8_t>& labels,
                  std::vector<uint8_t>& pixels) {
  ByteSource source(path);
  const size_t before = labels.size();
  uint8_t record[kRecordBytes];
  while (const size_t count = source.read(record, kRecordBytes)) {
    if (count != kRecordBytes)
      source.fail(fmt::format("cut off in record {}: expected {} bytes, found {}",
                              labels.size() - before, kRecordBytes, count));
    if (record[0] >= kClasses)
      source.fail(fmt::format("label {} of record {} is out of range; there are 10 classes, from 0",
                              record[0], labels.size() - before));
    try {
      pixels.insert(pixels.end(), record + 1, record + kRecordBytes);
      labels.push_back(record[0]);
    } catch (const std::bad_alloc&) {
      pixels = {};  // the message needs memory too
      source.fail(fmt::format("there is no memory for more than its first {} images",
                              labels.size() - before));
    }
  }
  if (labels.size() == before) source.fail("it holds no images");
}

HostTensor make_room(const std::filesystem::path& folder, int64_t count) {
  try {
    return make_host_tensor({count, 3, 32, 32}, DType::u8);
  } catch (const OutOfMemoryError& error) {
    throw DataError(fmt::format("cannot read '{}': there is no memory for its {} images: {}",
                                printable(folder.native()), count, error.what()));
  }
}

}  // namespace

TensorDataset cifar10(const std::filesystem::path& folder, bool train,
                      const Cifar10Options& options) {
  std::vector<uint8_t> labels, pixels;
  for (const auto& path : files_of(folder, train))
    naming_lack_of_memory<DataError>("cannot read", path,
                                     [&] { read_records(path, labels, pixels); });
  HostTensor images = make_room(folder, static_cast<int64_t>(labels.size()));
  std::memcpy(images.values, pixels.data(), pixels.size());
  return TensorDataset(images.tensor, labels_from_bytes(labels, kClasses, folder))
      .convert(options.pixels);
}

std::vector<std::string> cifar10_classes(const std::filesystem::path& folder) {
  const auto path = folder / "batches.meta.txt";
  ByteSource source(path);
  std::string text(kMaxText, '\0');
  text.resize(source.read(text.data(), text.size()));
  std::istringstream file(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != static_cast<size_t>(kClasses))
    source.fail(fmt::format("expected 10 names of classes, found {}", names.size()));
  return names;
}

}  // namespace tenon::data
