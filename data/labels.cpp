#include <string>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/labels.h>

namespace tenon::data {

Tensor labels_from_bytes(std::span<const uint8_t> labels, int64_t classes,
                         const std::filesystem::path& path) {
  HostTensor result = make_host_tensor({static_cast<int64_t>(labels.size())}, DType::i64);
  auto* to = static_cast<int64_t*>(result.values);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= classes)
      throw DataError(fmt::format(
          "cannot read '{}': label {} of example {} is out of range; there are {} classes, from 0",
          printable(path.native()), labels[i], i, classes));
    to[i] = labels[i];
  }
  return result.tensor;
}

}  // namespace tenon::data
