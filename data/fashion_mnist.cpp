#include <array>
#include <string>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/fashion_mnist.h>

namespace tenon::data {
namespace {

#define TENON_FASHION_URL "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
constexpr RemoteFile file(std::string_view url, std::string_view md5) {
  return {url.substr(sizeof(TENON_FASHION_URL) - 1), url, md5};
}

constexpr std::array kFiles = {
    file(TENON_FASHION_URL "train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    file(TENON_FASHION_URL "train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
    file(TENON_FASHION_URL "t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
    file(TENON_FASHION_URL "t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
};

constexpr std::array<std::string_view, 10> kClassNames = {
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

}  // namespace

std::span<const RemoteFile> fashion_mnist_files() { return kFiles; }

std::string_view fashion_mnist_class(int64_t label) {
  if (label < 0 || label >= static_cast<int64_t>(kClassNames.size()))
    throw IndexError(
        fmt::format("fashion_mnist_class: there is no class {}; classes are 0 to 9", label));
  return kClassNames[static_cast<size_t>(label)];
}

}  // namespace tenon::data
