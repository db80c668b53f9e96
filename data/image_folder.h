// Images in folders, one for each class.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <tenon/data/dataset.h>
#include <tenon/data/image.h>
#include <tenon/data/image_file.h>

namespace tenon::data {

// Says how an ImageFolder reads and changes its images.
struct ImageFolderOptions {
  // Lists the steps that all images go through; they make the images of a batch equal in size.
  Compose transform = {};
  // Says how files are read; by default as three channels.
  ImageFileOptions image = {};
};

// The images root/<class>/….jpg, .jpeg and .png, also in folders below. Classes are the folders of
// the root in the order of their names, and numbered from 0 on; the examples of a class are in the
// order of their paths, as torchvision has them. Batches are images (N, C, H, W), u8 or what the
// transform makes of them, and i64 labels (N). A file is read whenever it is asked for.
class TENON_API ImageFolder : public Dataset {
 public:
  // Lists the files. Throws a DataError if the root cannot be read or has no folders, or if a class
  // has no image.
  explicit ImageFolder(const std::filesystem::path& root, ImageFolderOptions options = {});

  // Returns the number of images of all classes.
  int64_t size() const override;
  // Reads these images. Throws a DataError that names the example and its file if it cannot be read
  // or if its image has another size than the first one of the batch, and a ValueError if there are
  // no indices.
  Batch get_batch(std::span<const int64_t> indices) const override;
  // Returns the name of the class and the root.
  std::string name() const override;

  // Returns the names of the classes by their numbers.
  const std::vector<std::string>& classes() const;
  // Returns the file of an example. Throws an IndexError if there is no such example.
  std::filesystem::path path(int64_t index) const;
  // Returns the number of the class of an example. Throws an IndexError if there is no such
  // example.
  int64_t label(int64_t index) const;
  // Returns the labels of all examples, i64 (N): for the weights of a WeightedRandomSampler.
  Tensor labels() const;

 private:
  struct Found;
  std::shared_ptr<const Found> found_;
  std::shared_ptr<const ImageFolderOptions> options_;
};

}  // namespace tenon::data
