#include "contents.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace tenon::reader {
namespace {

using hdf5_wire::EntryKind;
using hdf5_wire::Type;

constexpr int kMaxDepth = 64;
constexpr size_t kMaxLinks = 1'000'000;
constexpr uint64_t kFreeChunkBytes = uint64_t{64}
                                     << 20;  // a chunk may be as large as the file and this

// Sets dims, or kind and why.
void describe_shape(hid_t dataset, Item& item) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "read its shape");
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind == H5S_NULL) {
    item.kind = EntryKind::left_out;
    item.why = "it is empty, without a shape";
    return;
  }
  const int rank =
      kind == H5S_SCALAR ? 0 : check(H5Sget_simple_extent_ndims(space), "read its shape");
  if (rank > static_cast<int>(hdf5_wire::kMaxRank))
    throw Fault(fmt::format("it has {} dimensions, and a tensor has at most {}", rank,
                            hdf5_wire::kMaxRank));
  item.dims.resize(static_cast<size_t>(rank));
  if (rank > 0)
    check(H5Sget_simple_extent_dims(space, item.dims.data(), nullptr), "read its shape");
  uint64_t elements = 1;
  for (const hsize_t dim : item.dims)
    if (dim > 1 &&
        (__builtin_mul_overflow(elements, dim, &elements) || elements >= uint64_t{1} << 60)) {
      item.dims.clear();
      throw Fault("its shape is absurdly large");
    }
}

uint64_t elements_of(const Item& item) {
  uint64_t elements = 1;
  for (const hsize_t dim : item.dims) elements *= dim;
  return elements;
}

void require_known_filters(hid_t properties) {
  const int filters = check(H5Pget_nfilters(properties), "count its filters");
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, config = 0;
    size_t values = 0;
    std::array<char, 64> name{};
    const H5Z_filter_t filter =
        H5Pget_filter2(properties, static_cast<unsigned>(i), &flags, &values, nullptr,
                       name.size() - 1, name.data(), &config);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32)
      throw Fault(fmt::format(
          "it is packed with the filter {}{}; deflate (gzip), shuffle and fletcher32 are read",
          filter, name[0] ? fmt::format(" ({})", name.data()) : ""));
  }
}

// Checks that every chunk was written, once, and has a size that fits the file.
void check_chunks(hid_t dataset, hid_t properties, const Item& item, uint64_t file_bytes) {
  std::array<hsize_t, hdf5_wire::kMaxRank> chunk{};
  const int rank = check(H5Pget_chunk(properties, static_cast<int>(chunk.size()), chunk.data()),
                         "read the size of its chunks");
  if (static_cast<size_t>(rank) != item.dims.size())
    throw Fault("its chunks have another number of dimensions");
  const Handle type(H5Dget_type(dataset), H5Tclose, "read its type");
  uint64_t expected = 1, bytes = H5Tget_size(type);
  for (size_t i = 0; i < item.dims.size(); ++i) {
    if (chunk[i] == 0 || __builtin_mul_overflow(bytes, chunk[i], &bytes))
      throw Fault("its chunks have an absurd size");
    expected *= (item.dims[i] - 1) / chunk[i] + 1;
  }
  if (bytes > kFreeChunkBytes + file_bytes)
    throw Fault(
        fmt::format("its chunks have {} bytes each, which is too much for this file", bytes));
  const Handle space(H5Dget_space(dataset), H5Sclose, "read its shape");
  hsize_t written = 0;
  check(H5Dget_num_chunks(dataset, space, &written), "count its chunks");
  if (written != expected)
    throw Fault(fmt::format("only {} of its {} chunks were written", written, expected));
}

// Returns how many bytes of the file the values take.
uint64_t check_storage(hid_t dataset, const Item& item, uint64_t file_bytes) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose, "read its properties");
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT && layout != H5D_CHUNKED)
    throw Fault("its values are in other data sets or files (a virtual data set)");
  if (check(H5Pget_external_count(properties), "look for other files") != 0)
    throw Fault("its values are in other files");
  require_known_filters(properties);
  if (elements_of(item) == 0) return 0;
  H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
  check(H5Dget_space_status(dataset, &status), "look for its values");
  if (status == H5D_SPACE_STATUS_NOT_ALLOCATED) throw Fault("its values were never written");
  const uint64_t stored = H5Dget_storage_size(dataset);
  if (stored > file_bytes) throw Fault("its values are larger than the file");
  const Handle type(H5Dget_type(dataset), H5Tclose, "read its type");
  if (layout == H5D_CHUNKED)
    check_chunks(dataset, properties, item, file_bytes);
  else if (stored != elements_of(item) * H5Tget_size(type))
    throw Fault("its values do not have the size of its shape");
  if (layout == H5D_CONTIGUOUS) {
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset > file_bytes || stored > file_bytes - offset)
      throw Fault("its values are outside the file");
  }
  if (elements_of(item) * size_of(item.type) / hdf5_wire::kMaxExpansion > file_bytes)
    throw Fault("its values are larger than this file can hold");
  return stored;
}

struct Link {
  std::string name;
  H5L_type_t type;
};

// Everything below one file, in the order of the links.
class Walk {
 public:
  Walk(hid_t file, uint64_t file_bytes) : file_bytes_(file_bytes) {
    const Handle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose, "open the first group");
    H5O_info_t info{};
    check(H5Oget_info2(root, &info, H5O_INFO_BASIC), "look at the first group");
    groups_.insert(info.addr);
    visit(root, "", 0);
  }
  std::vector<Item> take() { return std::move(items_); }

 private:
  struct Listing {
    Walk* walk;
    std::vector<Link> links;
    bool too_many = false;
  };

  static herr_t collect(hid_t, const char* name, const H5L_info_t* info, void* to) noexcept {
    auto& listing = *static_cast<Listing*>(to);
    try {
      listing.walk->bytes_ += std::strlen(name) + sizeof(hdf5_wire::Entry);
      listing.too_many =
          ++listing.walk->links_ > kMaxLinks || listing.walk->bytes_ > hdf5_wire::kMaxContentsBytes;
      if (listing.too_many) return -1;
      listing.links.push_back({name, info->type});
      return 0;
    } catch (...) {
      return -1;
    }
  }

  std::vector<Link> links_in(hid_t group) {
    const Handle properties(H5Gget_create_plist(group), H5Pclose, "read a group's properties");
    unsigned order = 0;
    check(H5Pget_link_creation_order(properties, &order), "read a group's order");
    Listing listing{this, {}};
    hsize_t position = 0;
    const herr_t done =
        H5Literate(group, order & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME,
                   H5_ITER_INC, &position, collect, &listing);
    if (listing.too_many) throw Fault("it has too many objects, or names that are too long");
    check(done, "list a group");
    return std::move(listing.links);
  }

  void visit(hid_t group, const std::string& prefix, int depth) {
    if (depth > kMaxDepth)
      throw Fault(fmt::format("its groups are nested more than {} deep", kMaxDepth));
    for (const Link& link : links_in(group)) {
      const std::string path = prefix + link.name;
      bytes_ += path.size();
      if (bytes_ > hdf5_wire::kMaxContentsBytes) throw Fault("its names are too long");
      if (depth == 0 && link.name.starts_with('@')) {
        leave_out(path, "names with @ are for parts of a training run");
      } else if (link.type == H5L_TYPE_SOFT) {
        leave_out(path, "it is a soft link, and these are not followed");
      } else if (link.type != H5L_TYPE_HARD) {
        leave_out(path, "it is a link to another file, and these are not followed");
      } else if (link.name.empty() || link.name == "." ||
                 link.name.find('/') != std::string::npos) {
        leave_out(path, "HDF5 reads its name as another one");
      } else {
        visit_object(group, link.name, path, depth);
      }
    }
  }

  void visit_object(hid_t group, const std::string& name, const std::string& path, int depth) {
    const hid_t id = H5Oopen(group, name.c_str(), H5P_DEFAULT);
    H5O_info_t info{};
    if (id < 0) return describe_failure(path);
    const Handle object(id, H5Oclose, "open an object");
    if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0) return describe_failure(path);
    if (info.type == H5O_TYPE_GROUP) {
      if (!groups_.insert(info.addr).second)
        return leave_out(path, "it is a second link to a group, or one that leads back");
      visit(object, path + "/", depth + 1);
    } else if (info.type == H5O_TYPE_DATASET) {
      describe_dataset(object, info.addr, path);
    } else {
      leave_out(path, "it is the name of a type");
    }
  }

  void describe_dataset(hid_t dataset, haddr_t address, const std::string& path) {
    Item& item = items_.emplace_back();
    item.path = path;
    try {
      describe_shape(dataset, item);
      if (item.kind == EntryKind::tensor) describe_type(dataset, item);
      if (item.kind != EntryKind::tensor) return;
      const uint64_t stored = check_storage(dataset, item, file_bytes_);
      // A data set may have several names, but two of them cannot have the same bytes.
      if (datasets_.insert(address).second && __builtin_add_overflow(stored_, stored, &stored_))
        throw Fault("its values are larger than the file");
    } catch (const Fault& fault) {
      item.kind = EntryKind::unreadable;
      item.why = fault.what();
    }
    if (stored_ > file_bytes_) throw Fault("the values of its data sets overlap");
  }

  void describe_failure(const std::string& path) {
    const std::string why = "HDF5 cannot open it: " + hdf5::last_error();
    items_.push_back({path, EntryKind::unreadable, Type::f32, {}, why});
  }
  void leave_out(const std::string& path, const char* why) {
    items_.push_back({path, EntryKind::left_out, Type::f32, {}, why});
  }

  const uint64_t file_bytes_;
  uint64_t stored_ = 0, bytes_ = 0;
  size_t links_ = 0;
  std::unordered_set<haddr_t> groups_, datasets_;
  std::vector<Item> items_;
};

bool has_block_in_front(hid_t file) {
  const Handle properties(H5Fget_create_plist(file), H5Pclose, "read the file's properties");
  hsize_t bytes = 0;
  check(H5Pget_userblock(properties, &bytes), "look for a user block");
  return bytes > 0;
}

}  // namespace

FileContents list_contents(hid_t file, uint64_t file_bytes) {
  FileContents contents;
  contents.looks_like_checkpoint =
      has_block_in_front(file) &&
      check(H5Aexists(file, "tenon_version"), "look for attributes") > 0;
  contents.items = Walk(file, file_bytes).take();
  return contents;
}

}  // namespace tenon::reader
