#include "checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <tenon/serialization/index_wire.h>

namespace tenon::reader {
namespace {

using hdf5_wire::kDtypeName, hdf5_wire::kVersionName, hdf5_wire::kWrappersName;
using hdf5_wire::Type;

constexpr uint32_t kFormatVersion = 1;
constexpr uint64_t kHeaderBytes = 512;
constexpr std::array<std::string_view, 8> kDtypes = {"f32", "f64", "f16", "bf16",
                                                     "i64", "i32", "u8",  "bool"};

// Reads a list of texts of fixed length, in ASCII or UTF-8 and with any padding. A scalar gives one
// text.
std::vector<std::string> read_texts(hid_t object, const char* name) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, "open an attribute");
  const Handle type(H5Aget_type(attribute), H5Tclose, "read an attribute's type");
  const Handle space(H5Aget_space(attribute), H5Sclose, "read an attribute's space");
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0)
    throw Fault(std::string("its attribute '") + name + "' is not fixed-length text");
  const size_t width = H5Tget_size(type);
  const auto count = static_cast<size_t>(
      check(H5Sget_simple_extent_npoints(space), "count an attribute's values"));
  if (width == 0 || count > (size_t{1} << 30) / width)
    throw Fault(std::string("its attribute '") + name + "' is too large");
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
  const Handle attribute(H5Aopen(file, kVersionName, H5P_DEFAULT), H5Aclose,
                         "find the format version");
  const Handle space(H5Aget_space(attribute), H5Sclose, "read the format version");
  if (H5Sget_simple_extent_npoints(space) != 1) throw Fault("its format version is not one number");
  check(H5Aread(attribute, H5T_NATIVE_UINT32, &version), "read the format version");
  if (version != kFormatVersion) throw Fault(fmt::format("its format version is {}", version));
}

Type read_dtype(hid_t dataset) {
  const std::vector<std::string> dtype = read_texts(dataset, kDtypeName);
  if (dtype.size() != 1) throw Fault("its dtype is not one name");
  const auto found = std::find(kDtypes.begin(), kDtypes.end(), dtype[0]);
  if (found == kDtypes.end())
    throw Fault("its dtype is \"" + dtype[0].substr(0, 40) + "\", which Tenon does not have");
  return static_cast<Type>(found - kDtypes.begin());
}

// The type that a checkpoint stores a dtype as. It is little-endian; bool is h5py's enumeration,
// and bf16 is stored as unsigned 16-bit words.
Handle stored_type(Type dtype) {
  if (dtype == Type::bf16) return Handle(H5Tcopy(H5T_STD_U16LE), H5Tclose, "copy a type");
  return dtype == Type::boolean ? hdf5::bool_type<Fault>() : memory_type(dtype);
}

std::vector<uint64_t> read_dims(hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "read a shape");
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind != H5S_SCALAR && kind != H5S_SIMPLE) throw Fault("it has no shape");
  const int rank = check(H5Sget_simple_extent_ndims(space), "read a shape");
  if (rank > static_cast<int>(hdf5_wire::kMaxRank))
    throw Fault(fmt::format("it has {} dimensions, and a tensor has at most {}", rank,
                            hdf5_wire::kMaxRank));
  std::array<hsize_t, hdf5_wire::kMaxRank> dims{};
  if (rank > 0) check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "read a shape");
  return {dims.begin(), dims.begin() + rank};
}

struct Links {
  std::vector<std::pair<std::string, bool>> names;  // and whether it is a hard link
  bool no_memory = false;
};

herr_t collect_name(hid_t, const char* name, const H5L_info_t* info, void* found) noexcept {
  auto& links = *static_cast<Links*>(found);
  try {
    links.names.emplace_back(name, info->type == H5L_TYPE_HARD);
    return 0;
  } catch (...) {
    links.no_memory = true;
    return -1;
  }
}

// Returns all links in a group in the order of their creation.
std::vector<std::pair<std::string, bool>> names_of(hid_t group) {
  Links links;
  hsize_t position = 0;
  const herr_t status =
      H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &position, collect_name, &links);
  if (links.no_memory) throw std::bad_alloc();
  check(status, "list the tensors");
  return std::move(links.names);
}

class Index {
 public:
  explicit Index(uint64_t image_bytes) : image_bytes_(image_bytes) {}

  void add_model(hid_t file) {
    for (const auto& [name, hard] : names_of(file)) {
      if (!name.starts_with('@'))
        add_named(file, name, hard, "", 0, tensors_);
      else if (hard)  // a link could lead elsewhere
        names_.push_back(name);
    }
  }
  void add_groups(hid_t file) {
    for (const std::string& name : names_) add_group(file, name);
  }
  std::string bytes(hid_t file) const {
    uint32_t wrappers = index_wire::kNoWrappers;
    std::string texts, bytes;
    if (check(H5Aexists(file, kWrappersName), "look for wrappers") > 0) {
      const std::vector<std::string> recorded = read_texts(file, kWrappersName);
      wrappers = static_cast<uint32_t>(recorded.size());
      for (const std::string& text : recorded) index_wire::put_text(texts, text);
    }
    index_wire::put(bytes, index_wire::Head{index_wire::kVersion, wrappers, count_of_groups_, 0,
                                            count_of_tensors_});
    return bytes + texts + groups_ + tensors_;
  }

 private:
  // What is wrong with one group is no matter of those who do not read it.
  void add_group(hid_t file, const std::string& name) {
    std::string tensors, fault;
    const uint64_t before = count_of_tensors_;
    try {
      const Handle place(H5Gopen2(file, name.c_str(), H5P_DEFAULT), H5Gclose,
                         ("open the group '" + name + "'").c_str());
      for (const auto& [key, hard] : names_of(place))
        add_named(place, key, hard, name + ": ", count_of_groups_ + 1, tensors);
    } catch (const Fault& error) {
      fault = std::string(error.what()).substr(0, hdf5_wire::kMaxTextBytes);
      tensors.clear();
      count_of_tensors_ = before;
    }
    index_wire::put(groups_, index_wire::Group{static_cast<uint32_t>(name.size()),
                                               static_cast<uint32_t>(fault.size())});
    groups_ += name;
    groups_ += fault;
    tensors_ += tensors;
    ++count_of_groups_;
  }

  void add_named(hid_t place, const std::string& name, bool hard, const std::string& where,
                 uint32_t group, std::string& tensors) {
    ++count_of_tensors_;
    // HDF5 would not take such a name for the link that has it, and libtenon refuses it.
    if (name.empty() || name == "." || name.find('/') != std::string::npos)
      return add(tensors, group, name, Type::f32, {}, 0);
    try {
      if (!hard) throw Fault("it is a link to another object");
      add_dataset(place, name, group, tensors);
    } catch (const Fault& fault) {
      throw Fault(where + "tensor '" + name + "': " + fault.what());
    }
  }

  void add_dataset(hid_t place, const std::string& name, uint32_t group, std::string& tensors) {
    const Handle dataset(H5Dopen2(place, name.c_str(), H5P_DEFAULT), H5Dclose, "open it");
    const Handle properties(H5Dget_create_plist(dataset), H5Pclose, "read its properties");
    if (H5Pget_layout(properties) != H5D_CONTIGUOUS || H5Pget_external_count(properties) != 0)
      throw Fault("it is not stored contiguously in this file");
    const Type dtype = read_dtype(dataset);
    const std::vector<uint64_t> dims = read_dims(dataset);
    const Handle type(H5Dget_type(dataset), H5Tclose, "read its type");
    if (check(H5Tequal(type, stored_type(dtype)), "compare types") == 0)
      throw Fault("its HDF5 type is not the one that " +
                  std::string(kDtypes[static_cast<size_t>(dtype)]) + " is stored as");
    const bool empty = std::find(dims.begin(), dims.end(), uint64_t{0}) != dims.end();
    add(tensors, group, name, dtype, dims,
        empty ? 0 : hdf5::offset_of<Fault>(dataset, kHeaderBytes));
  }

  void add(std::string& tensors, uint32_t group, const std::string& key, Type type,
           const std::vector<uint64_t>& dims, uint64_t offset) {
    bytes_ += sizeof(index_wire::Tensor) + sizeof(uint64_t) * dims.size() + key.size();
    if (bytes_ > hdf5_wire::kMaxContentsBytes + 4 * image_bytes_)
      throw Fault("it has too many tensors, or names that are too long");
    index_wire::put(tensors, index_wire::Tensor{group,
                                                static_cast<uint32_t>(key.size()),
                                                static_cast<uint8_t>(type),
                                                static_cast<uint8_t>(dims.size()),
                                                {},
                                                offset});
    for (const uint64_t dim : dims) index_wire::put(tensors, dim);
    tensors += key;
  }

  const uint64_t image_bytes_;
  uint64_t bytes_ = 0, count_of_tensors_ = 0;
  uint32_t count_of_groups_ = 0;
  std::vector<std::string> names_;  // of groups
  std::string groups_, tensors_;
};

}  // namespace

std::string index_of_checkpoint(hid_t file, uint64_t image_bytes) {
  check_version(file);
  Index index(image_bytes);
  index.add_model(file);
  index.add_groups(file);
  return index.bytes(file);
}

}  // namespace tenon::reader
