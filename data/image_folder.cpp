#include <algorithm>
#include <system_error>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/image_batch.h>
#include <tenon/data/image_folder.h>
#include <tenon/data/naming.h>
#include <tenon/data/reading.h>

namespace fs = std::filesystem;

namespace tenon::data {

struct ImageFolder::Found {
  fs::path root;
  std::vector<std::string> classes;
  std::vector<fs::path> files;
  std::vector<int64_t> labels;
};

namespace {

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw DataError(fmt::format("cannot read '{}': {}", printable(path.native()), why));
}

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

std::vector<fs::path> folders_of(const fs::path& root) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root))
    if (entry.is_directory()) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Folders that are links are not entered, because they may lead back.
std::vector<fs::path> images_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (is_image(entry.path()) && entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    const fs::path in_a = a.parent_path(), in_b = b.parent_path();
    return in_a.native() != in_b.native() ? in_a.native() < in_b.native()
                                          : a.filename().native() < b.filename().native();
  });
  return files;
}

// Throws an error that describes what the folder has instead of folders of classes.
[[noreturn]] void refuse_without_classes(const fs::path& root) {
  size_t images = 0, others = 0;
  fs::path first;  // by name
  for (const auto& entry : fs::directory_iterator(root)) {
    const bool image = is_image(entry.path());
    ++(image ? images : others);
    if (image && (first.empty() || entry.path() < first)) first = entry.path();
  }
  const std::string expected =
      "an ImageFolder has a folder for each class, with the images of the class in it, as in "
      "<root>/cat/1.jpg and <root>/dog/2.jpg";
  if (images > 0)
    refuse(root, fmt::format("{}; found no folder but {} image{} ('{}'{}): move {} into folders of "
                             "{} class{}",
                             expected, images, images == 1 ? "" : "s",
                             printable(first.filename().native()), images == 1 ? "" : ", …",
                             images == 1 ? "it" : "them", images == 1 ? "its" : "their",
                             images == 1 ? "" : "es"));
  refuse(root, fmt::format("{}; found no folder, no image and {} other file{}", expected, others,
                           others == 1 ? "" : "s"));
}

}  // namespace

ImageFolder::ImageFolder(const fs::path& root, ImageFolderOptions options)
    : options_(std::make_shared<const ImageFolderOptions>(std::move(options))) {
  auto found = std::make_shared<Found>();
  found->root = root;
  try {
    for (const fs::path& folder : folders_of(root)) {
      const std::vector<fs::path> files = images_of(folder);
      if (files.empty()) refuse(folder, "the class has no .jpg, .jpeg or .png files");
      found->labels.insert(found->labels.end(), files.size(),
                           static_cast<int64_t>(found->classes.size()));
      found->files.insert(found->files.end(), files.begin(), files.end());
      found->classes.push_back(folder.filename().string());
    }
  } catch (const fs::filesystem_error& error) {
    refuse(error.path1().empty() ? root : error.path1(),
           error.code() == std::errc::no_such_file_or_directory ? "there is no such folder"
                                                                : error.code().message());
  }
  if (found->classes.empty()) refuse_without_classes(root);
  found_ = std::move(found);
}

int64_t ImageFolder::size() const { return static_cast<int64_t>(found_->files.size()); }

Batch ImageFolder::get_batch(std::span<const int64_t> indices) const {
  if (indices.empty()) throw ValueError("ImageFolder: no examples asked for");
  const HostTensor labels = make_host_tensor({static_cast<int64_t>(indices.size())}, DType::i64);
  ImageBatch images(indices.size());
  Image image;
  Reading now = reading();
  for (size_t i = 0; i < indices.size(); ++i) {
    static_cast<int64_t*>(labels.values)[i] = label(indices[i]);
    naming_example(*this, indices[i], [&] {
      const fs::path& file = found_->files[static_cast<size_t>(indices[i])];
      read_image(file, image, options_->image);
      now.place = i;
      Random random = now.random(indices[i]);
      try {
        options_->transform(image, random);
        images.put(i, image);
      } catch (const std::bad_alloc&) {
        throw;
      } catch (...) {
        std::throw_with_nested(
            DataError(fmt::format("'{}': {}", printable(file.native()), current_error_text())));
      }
    });
  }
  return {images.tensor(), labels.tensor};
}

std::string ImageFolder::name() const {
  return fmt::format("ImageFolder '{}'", printable(found_->root.native()));
}

const std::vector<std::string>& ImageFolder::classes() const { return found_->classes; }

fs::path ImageFolder::path(int64_t index) const {
  label(index);
  return found_->files[static_cast<size_t>(index)];
}

int64_t ImageFolder::label(int64_t index) const {
  if (index < 0 || index >= size())
    throw IndexError(fmt::format("{}: there is no example {}; it has {}", name(), index, size()));
  return found_->labels[static_cast<size_t>(index)];
}

Tensor ImageFolder::labels() const {
  const HostTensor labels = make_host_tensor({size()}, DType::i64);
  std::copy(found_->labels.begin(), found_->labels.end(), static_cast<int64_t*>(labels.values));
  return labels.tensor;
}

}  // namespace tenon::data
