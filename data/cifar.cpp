#include <cstring>
#include <new>
#include <sstream>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/byte_source.h>
#include <tenon/data/cifar.h>
#include <tenon/data/labels.h>

namespace tenon::data {
namespace {

constexpr size_t image_bytes = 3 * 32 * 32, record_bytes = 1 + image_bytes;
constexpr int64_t classes = 10;
constexpr int train_files = 5;
constexpr size_t most_text = size_t{1} << 16;  // bytes that are read of the names of classes

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder, bool train) {
  if (!train) return {find_plain_or_gz(folder, "test_batch.bin")};
  std::vector<std::filesystem::path> files{find_plain_or_gz(folder, "data_batch_1.bin")};
  bool gap = false;
  for (int i = 2; i <= train_files; ++i) {
    const std::string name = "data_batch_" + std::to_string(i) + ".bin";
    const auto path = look_for_plain_or_gz(folder, name);
    if (!path.empty() && gap)
      throw DataError("'" + printable(path.native()) + "' is there, but not data_batch_" +
                      std::to_string(files.size() + 1) + ".bin in front of it");
    path.empty() ? void(gap = true) : files.push_back(path);
  }
  return files;
}

// Adds the records of a file. Nothing in it says how many there are, and packed well it may hold
// more than memory does.
void read_records(const std::filesystem::path& path, std::vector<uint8_t>& labels,
                  std::vector<uint8_t>& pixels) {
  ByteSource source(path);
  const size_t before = labels.size();
  uint8_t record[record_bytes];
  while (const size_t count = source.read(record, record_bytes)) {
    if (count != record_bytes)
      source.fail("cut off in record " + std::to_string(labels.size() - before) + ": expected " +
                  std::to_string(record_bytes) + " bytes, found " + std::to_string(count));
    if (record[0] >= classes)
      source.fail("label " + std::to_string(record[0]) + " of record " +
                  std::to_string(labels.size() - before) +
                  " is out of range; there are 10 classes, from 0");
    try {
      pixels.insert(pixels.end(), record + 1, record + record_bytes);
      labels.push_back(record[0]);
    } catch (const std::bad_alloc&) {
      pixels = {};  // the message takes memory, too
      source.fail("there is no memory for more than its first " +
                  std::to_string(labels.size() - before) + " images");
    }
  }
  if (labels.size() == before) source.fail("it holds no images");
}

HostTensor make_room(const std::filesystem::path& folder, int64_t count) {
  try {
    return make_host_tensor({count, 3, 32, 32}, DType::u8);
  } catch (const OutOfMemoryError& error) {
    throw DataError("cannot read '" + printable(folder.native()) +
                    "': there is no memory for its " + std::to_string(count) +
                    " images: " + error.what());
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
  return TensorDataset(images.tensor, labels_from_bytes(labels, classes, folder))
      .convert(options.pixels);
}

std::vector<std::string> cifar10_classes(const std::filesystem::path& folder) {
  const auto path = folder / "batches.meta.txt";
  ByteSource source(path);
  std::string text(most_text, '\0');
  text.resize(source.read(text.data(), text.size()));
  std::istringstream file(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  if (names.size() != static_cast<size_t>(classes))
    source.fail("expected 10 names of classes, found " + std::to_string(names.size()));
  return names;
}

}  // namespace tenon::data
