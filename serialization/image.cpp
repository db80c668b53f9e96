#include <algorithm>
#include <map>
#include <new>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/hdf5.h>
#include <tenon/serialization/hdf5_wire.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/image.h>

namespace tenon {
namespace {

using h5::check;
using h5::Handle;
using hdf5_wire::kDtypeName, hdf5_wire::kVersionName, hdf5_wire::kWrappersName;

void write_attribute(hid_t object, const char* name, hid_t type, hid_t space, const void* value) {
  Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                   "make an attribute");
  check(H5Awrite(attribute, type, value), "write an attribute");
}

void write_text(hid_t object, const char* name, std::string_view text) {
  Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a scalar space");
  write_attribute(object, name, h5::text_type(text.size()), space, text.data());
}

void write_texts(hid_t object, const char* name, const std::vector<std::string>& texts) {
  size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  std::string padded(std::max<size_t>(texts.size() * width, 1), '\0');
  for (size_t i = 0; i < texts.size(); ++i)
    std::copy(texts[i].begin(), texts[i].end(), padded.begin() + i * width);
  hsize_t count = texts.size();
  Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose, "make a list space");
  write_attribute(object, name, h5::text_type(width), space, padded.data());
}

Handle creation_properties() {
  Handle properties(H5Pcreate(H5P_FILE_CREATE), H5Pclose, "make file properties");
  check(H5Pset_userblock(properties, kCheckpointHeaderBytes), "set the user block");
  check(H5Pset_link_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
        "keep the order of names");
  check(H5Pset_obj_track_times(properties, false),
        "leave out times");  // the same tensors give the same bytes
  return properties;
}

Handle access_properties(MemoryFile& memory) {
  Handle properties(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make access properties");
  check(H5Pset_libver_bounds(properties, H5F_LIBVER_V18, H5F_LIBVER_V18),
        "choose the HDF5 1.8 format");
  memory.use_in(properties);
  return properties;
}

// The dataset is contiguous, and its space is reserved at once and not filled: the caller writes
// the values.
Handle dataset_properties() {
  Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "make dataset properties");
  check(H5Pset_layout(properties, H5D_CONTIGUOUS), "choose a contiguous layout");
  check(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY), "reserve space early");
  check(H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER), "leave space unfilled");
  check(H5Pset_obj_track_times(properties, false), "leave out times");
  return properties;
}

Handle add_group(hid_t file, hid_t utf8_name, const std::string& name) {
  Handle properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose, "make group properties");
  check(H5Pset_link_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED),
        "keep the order of names");
  check(H5Pset_obj_track_times(properties, false), "leave out times");
  return Handle(H5Gcreate2(file, name.c_str(), utf8_name, properties, H5P_DEFAULT), H5Gclose,
                "make a group");
}

void add_tensor(hid_t file, hid_t properties, hid_t utf8_name, StoredTensor& tensor) {
  if (const char* fault = fault_of_key(tensor.group, tensor.key))
    throw CheckpointError(fmt::format("cannot store a tensor under the key '{}': {}. Rename it",
                                      printable(tensor.key), fault));
  std::vector<hsize_t> dims(tensor.shape.begin(), tensor.shape.end());
  Handle space(dims.empty() ? H5Screate(H5S_SCALAR)
                            : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
               H5Sclose, "make a space");
  Handle dataset(H5Dcreate2(file, tensor.key.c_str(), h5::stored_type(tensor.dtype), space,
                            utf8_name, properties, H5P_DEFAULT),
                 H5Dclose, fmt::format("store a tensor named '{}'", printable(tensor.key)).c_str());
  write_text(dataset, kDtypeName, name_of(tensor.dtype));
  tensor.bytes = static_cast<uint64_t>(tensor.shape.numel()) * size_of(tensor.dtype);
  tensor.offset =
      tensor.bytes ? hdf5::offset_of<CheckpointError>(dataset, kCheckpointHeaderBytes) : 0;
}

}  // namespace

const char* fault_of_key(std::string_view key) {
  if (key.empty()) return "it is empty";
  if (key == ".") return "HDF5 takes it for the folder itself";
  if (key.find('/') != key.npos) return "HDF5 takes '/' for a folder";
  if (key.find('\0') != key.npos) return "it contains a zero byte";
  if (key[0] == '@')
    return "names that start with '@' are reserved for data that is not a tensor of the model";
  if (!is_utf8(key)) return "it is not valid UTF-8";
  return nullptr;
}

const char* fault_of_key(std::string_view group, std::string_view key) {
  return !group.empty() && key == kValuesKey ? nullptr : fault_of_key(key);
}

void build_image(ImageContents& contents, MemoryFile& memory) {
  h5::Session session;
  uint64_t name_bytes = 0;
  for (const StoredTensor& tensor : contents.tensors) name_bytes += tensor.key.size();
  h5::require_memory(contents.tensors.size(), name_bytes);
  Handle file(
      H5Fcreate("checkpoint", H5F_ACC_TRUNC, creation_properties(), access_properties(memory)),
      H5Fclose, "lay out a checkpoint");
  {
    Handle scalar(H5Screate(H5S_SCALAR), H5Sclose, "make a scalar space");
    write_attribute(file, kVersionName, H5T_STD_U32LE, scalar, &kCheckpointFormatVersion);
    write_text(file, "tenon_version", TENON_VERSION);
    if (contents.wrappers) write_texts(file, kWrappersName, *contents.wrappers);
    Handle properties = dataset_properties();
    Handle utf8_name(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "make link properties");
    check(H5Pset_char_encoding(utf8_name, H5T_CSET_UTF8), "make names UTF-8");
    std::map<std::string, Handle> groups;
    for (StoredTensor& tensor : contents.tensors) {
      hid_t place = file;
      if (!tensor.group.empty()) {
        auto found = groups.find(tensor.group);
        if (found == groups.end())
          found = groups.emplace(tensor.group, add_group(file, utf8_name, tensor.group)).first;
        place = found->second;
      }
      add_tensor(place, properties, utf8_name, tensor);
    }
  }
  file.close("finish a checkpoint");
  if (!memory.is_whole()) throw std::bad_alloc();
}

}  // namespace tenon
