#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <new>
#include <unordered_set>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/serialization/hdf5.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/image.h>

namespace tenon {
namespace {

using h5::check;
using h5::Handle;

constexpr const char* kWrappersName = "wrappers";
constexpr const char* kVersionName = "format_version";
constexpr const char* kDtypeName = "dtype";

// ---- writing ----

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

// Returns where the values of a dataset begin in the file. H5Dget_offset alone is not enough: it
// adds the length of the user block to any stored address, so the address that means "nowhere"
// becomes a position in the middle of the user block.
uint64_t offset_of(hid_t dataset) {
  H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
  check(H5Dget_space_status(dataset, &status), "look for its values");
  if (status != H5D_SPACE_STATUS_ALLOCATED)
    throw CheckpointError("no space is set aside for its values");
  const haddr_t offset = H5Dget_offset(dataset);
  if (offset == HADDR_UNDEF || offset < kCheckpointHeaderBytes)
    throw CheckpointError("its values are outside the file");
  return offset;
}

const char* fault_of(const std::string& group, const std::string& key) {
  if (!group.empty() && key == kValuesKey) return nullptr;
  return fault_of_key(key);
}

void add_tensor(hid_t file, hid_t properties, hid_t utf8_name, StoredTensor& tensor) {
  if (const char* fault = fault_of(tensor.group, tensor.key))
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
  tensor.offset = tensor.bytes ? offset_of(dataset) : 0;
}

// ---- reading ----

struct LinkNames {
  std::vector<std::pair<std::string, bool>> names;
  bool no_memory = false;
};

herr_t collect_name(hid_t, const char* name, const H5L_info_t* info, void* found) noexcept {
  auto& links = *static_cast<LinkNames*>(found);
  try {
    links.names.emplace_back(name, info->type == H5L_TYPE_HARD);
    return 0;
  } catch (...) {
    links.no_memory = true;
    return -1;
  }
}

uint64_t links_in(hid_t group) {
  H5G_info_t info{};
  check(H5Gget_info(group, &info), "count the tensors");
  return info.nlinks;
}

// Returns all links in a group in the order of their creation, and whether each is a hard link.
std::vector<std::pair<std::string, bool>> names_of(hid_t group) {
  LinkNames links;
  hsize_t position = 0;
  const herr_t status =
      H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &position, collect_name, &links);
  if (links.no_memory) throw std::bad_alloc();
  check(status, "list the tensors");
  return std::move(links.names);
}

// Reads a list of texts of fixed length, in ASCII or UTF-8 and with any padding. A scalar gives one
// text.
std::vector<std::string> read_texts(hid_t object, const char* name) {
  Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, "open an attribute");
  Handle type(H5Aget_type(attribute), H5Tclose, "read an attribute's type");
  Handle space(H5Aget_space(attribute), H5Sclose, "read an attribute's space");
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
    throw CheckpointError(fmt::format("its attribute '{}' is not fixed-length text", name));
  const size_t width = H5Tget_size(type);
  auto count = static_cast<size_t>(
      check(H5Sget_simple_extent_npoints(space), "count an attribute's values"));
  if (width == 0 || count > (size_t{1} << 30) / width)
    throw CheckpointError(fmt::format("its attribute '{}' is too large", name));
  std::string padded(std::max<size_t>(count * width, 1), '\0');
  // The attribute is read with its own type, because HDF5 refuses to convert between character
  // sets.
  if (count > 0) check(H5Aread(attribute, type, padded.data()), "read an attribute");
  const bool spaces = H5Tget_strpad(type) == H5T_STR_SPACEPAD;
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    std::string& text =
        texts.emplace_back(padded.c_str() + i * width, strnlen(padded.c_str() + i * width, width));
    while (spaces && text.ends_with(' ')) text.pop_back();
  }
  return texts;
}

void check_version(hid_t file) {
  uint32_t version = 0;
  Handle attribute(H5Aopen(file, kVersionName, H5P_DEFAULT), H5Aclose, "find the format version");
  Handle space(H5Aget_space(attribute), H5Sclose, "read the format version");
  if (H5Sget_simple_extent_npoints(space) != 1)
    throw CheckpointError("its format version is not one number");
  check(H5Aread(attribute, H5T_NATIVE_UINT32, &version), "read the format version");
  if (version != kCheckpointFormatVersion)
    throw CheckpointError(fmt::format("its format version is {}", version));
}

Shape read_shape(hid_t dataset) {
  Handle space(H5Dget_space(dataset), H5Sclose, "read a shape");
  H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind != H5S_SCALAR && kind != H5S_SIMPLE) throw CheckpointError("it has no shape");
  int rank = check(H5Sget_simple_extent_ndims(space), "read a shape");
  if (rank > static_cast<int>(Shape::max_rank))
    throw CheckpointError(
        fmt::format("it has {} dimensions, and a tensor has at most {}", rank, +Shape::max_rank));
  hsize_t dims[Shape::max_rank] = {};
  if (rank > 0) check(H5Sget_simple_extent_dims(space, dims, nullptr), "read a shape");
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    if (dims[i] > static_cast<hsize_t>(std::numeric_limits<int64_t>::max()))
      throw CheckpointError("a dimension is absurdly large");
    shape.push_back(static_cast<int64_t>(dims[i]));
  }
  return shape;
}

// Returns the size of the values in bytes. The shape of a tensor without elements is checked too,
// because its strides have to be computed.
uint64_t stored_bytes(const StoredTensor& tensor) {
  if (!is_addressable(tensor.shape))
    throw CheckpointError(fmt::format("its shape {} is absurdly large", tensor.shape));
  return static_cast<uint64_t>(tensor.shape.numel()) * size_of(tensor.dtype);
}

StoredTensor read_tensor(hid_t file, const std::string& key, uint64_t image_bytes) {
  Handle dataset(H5Dopen2(file, key.c_str(), H5P_DEFAULT), H5Dclose, "open it");
  Handle properties(H5Dget_create_plist(dataset), H5Pclose, "read its properties");
  if (H5Pget_layout(properties) != H5D_CONTIGUOUS || H5Pget_external_count(properties) != 0)
    throw CheckpointError("it is not stored contiguously in this file");
  std::vector<std::string> dtype = read_texts(dataset, kDtypeName);
  if (dtype.size() != 1) throw CheckpointError("its dtype is not one name");
  StoredTensor tensor{key, parse_dtype(dtype[0]), read_shape(dataset), 0, 0};
  Handle type(H5Dget_type(dataset), H5Tclose, "read its type");
  if (check(H5Tequal(type, h5::stored_type(tensor.dtype)), "compare types") == 0)
    throw CheckpointError(
        fmt::format("its HDF5 type is not the one that {} is stored as", dtype[0]));
  tensor.bytes = stored_bytes(tensor);
  if (tensor.bytes == 0) return tensor;
  tensor.offset = offset_of(dataset);
  if (tensor.offset > image_bytes || tensor.bytes > image_bytes - tensor.offset)
    throw CheckpointError(fmt::format("its values, {} bytes for its shape {}, are outside the file",
                                      tensor.bytes, tensor.shape));
  return tensor;
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

namespace {

// Opens the image for a scope.
struct OpenImage {
  explicit OpenImage(MemoryFile& memory)
      : file([&] {
          Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make access properties");
          memory.use_in(access);
          const hid_t opened = H5Fopen("checkpoint", H5F_ACC_RDONLY, access);
          if (opened < 0 && !memory.is_whole()) throw std::bad_alloc();
          return Handle(opened, H5Fclose, "read the checkpoint");
        }()) {
    check_version(file);
  }
  h5::Session session;
  Handle file;
};

// Returns body(file). Where the image could not be read, that is the error, and not what HDF5 makes
// of it.
template <class Body>
auto reading(const FileImage& image, Body&& body) {
  MemoryFile memory(image);
  try {
    const OpenImage open(memory);
    auto result = body(open.file);
    memory.rethrow();
    return result;
  } catch (...) {
    memory.rethrow();
    throw;
  }
}

// Returns the names in the root group or another one.
std::vector<std::pair<std::string, bool>> names_in(hid_t group, size_t image_bytes) {
  // A damaged file may claim more links than it has bytes.
  const uint64_t links = std::min<uint64_t>(links_in(group), image_bytes);
  h5::require_memory(links, std::min<uint64_t>(links * 64, image_bytes));
  return names_of(group);
}

using LinkList = std::vector<std::pair<std::string, bool>>;

std::vector<StoredTensor> read_tensors(hid_t place, const LinkList& names, const std::string& group,
                                       size_t image_bytes) {
  std::vector<StoredTensor> tensors;
  std::unordered_set<std::string_view> seen;
  for (const auto& [name, hard] : names) {
    if (group.empty() && name[0] == '@') continue;  // state that does not belong to the model
    try {
      // HDF5 would not take such a name for the link that has it.
      if (const char* fault = fault_of(group, name))
        throw CheckpointError(fmt::format("its name is not one of a tensor: {}", fault));
      if (!seen.insert(name).second) throw CheckpointError("there are two tensors of that name");
      if (!hard) throw CheckpointError("it is a link to another object");
      tensors.push_back(read_tensor(place, name, image_bytes));
      tensors.back().group = group;
    } catch (const Error& error) {
      throw CheckpointError(fmt::format("{}tensor '{}': {}",
                                        group.empty() ? "" : printable(group) + ": ",
                                        printable(name), printable(error.what())));
    }
  }
  return tensors;
}

}  // namespace

ImageContents read_image(const FileImage& image) {
  return reading(image, [&](hid_t file) {
    ImageContents contents;
    if (check(H5Aexists(file, kWrappersName), "look for wrappers") > 0)
      contents.wrappers = read_texts(file, kWrappersName);
    const LinkList names = names_in(file, image.size);
    contents.tensors = read_tensors(file, names, "", image.size);
    for (const auto& [name, hard] : names)
      if (name[0] == '@' && hard) contents.groups.push_back(name);  // a link could lead elsewhere
    return contents;
  });
}

std::vector<StoredTensor> read_group(const FileImage& image, const std::string& group) {
  return reading(image, [&](hid_t file) {
    const Handle place(H5Gopen2(file, group.c_str(), H5P_DEFAULT), H5Gclose,
                       ("open the group '" + printable(group) + "'").c_str());
    return read_tensors(place, names_in(place, image.size), group, image.size);
  });
}

}  // namespace tenon
