#include <algorithm>
#include <cstring>
#include <new>

#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>)  // since 1.14
#include <H5FDdevelop.h>
#endif

#include <tenon/core/error.h>
#include <tenon/serialization/hdf5_memory.h>

namespace tenon {

bool MemoryFile::read(uint64_t offset, size_t count, void* to) const {
  if (image_.size > 0) {
    if (offset > image_.size || count > image_.size - offset) return false;
    try {
      image_.read(offset, count, to);
      return true;
    } catch (...) {  // HDF5 is C
      return false;
    }
  }
  auto* out = static_cast<std::byte*>(to);
  while (count > 0) {
    size_t within = offset % kPageBytes, n = std::min(count, kPageBytes - within);
    auto page = pages_.find(offset / kPageBytes);
    if (page == pages_.end())
      std::memset(out, 0, n);
    else
      std::memcpy(out, page->second.data() + within, n);
    out += n, offset += n, count -= n;
  }
  return true;
}

bool MemoryFile::write(uint64_t offset, size_t count, const void* from) {
  if (image_.size > 0) return false;
  auto* in = static_cast<const std::byte*>(from);
  uint64_t end;
  if (__builtin_add_overflow(offset, count, &end)) return false;
  end_ = std::max(end_, end);
  try {
    while (count > 0) {
      size_t within = offset % kPageBytes, n = std::min(count, kPageBytes - within);
      std::memcpy(pages_[offset / kPageBytes].data() + within, in, n);
      in += n, offset += n, count -= n;
    }
  } catch (const std::bad_alloc&) {
    whole_ = false;
  }
  return true;
}

namespace {

// HDF5 copies this together with an access property list.
struct DriverInfo {
  MemoryFile* file;
};

struct OpenFile {
  H5FD_t base;  // first: HDF5 knows this part
  MemoryFile* file;
  haddr_t eoa;
};
OpenFile* self(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* self(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  auto* opened = info ? new (std::nothrow) OpenFile{{}, info->file, 0} : nullptr;
  if (info && !opened) info->file->note_lack_of_memory();
  return opened ? &opened->base : nullptr;
}
herr_t close_file(H5FD_t* file) {
  delete self(file);
  return 0;
}
int compare(const H5FD_t* a, const H5FD_t* b) {
  return self(a)->file == self(b)->file ? 0 : self(a)->file < self(b)->file ? -1 : 1;
}
herr_t query(const H5FD_t*, unsigned long* flags) {
  if (flags) *flags = H5FD_FEAT_AGGREGATE_METADATA;
  return 0;
}
haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t) { return self(file)->eoa; }
herr_t set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t eoa) {
  self(file)->eoa = eoa;
  return 0;
}
// New space is added at the end. This function aligns the values of tensors, because HDF5's own
// alignment enters every gap into a list and searches that list for each later block: the time
// would grow with the square of the number of tensors.
haddr_t alloc(H5FD_t* file, H5FD_mem_t type, hid_t, hsize_t size) {
  haddr_t& end = self(file)->eoa;
  const haddr_t unit = type == H5FD_MEM_DRAW ? MemoryFile::kValueAlignment : 1;
  if (end > HADDR_MAX - unit || size > HADDR_MAX - unit - end) return HADDR_UNDEF;
  const haddr_t begin = (end + unit - 1) / unit * unit;
  end = begin + size;
  return begin;
}
haddr_t get_eof(const H5FD_t* file, H5FD_mem_t) { return self(file)->file->size(); }
herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t count, void* to) {
  return self(file)->file->read(at, count, to) ? 0 : -1;
}
herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t count, const void* from) {
  return self(file)->file->write(at, count, from) ? 0 : -1;
}
herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  if (self(file)->file->size() != self(file)->eoa) self(file)->file->resize(self(file)->eoa);
  return 0;
}

H5FD_class_t describe_driver() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(513);  // of the range that is free for any use
#endif
  driver.name = "tenon-memory";
  driver.maxaddr = HADDR_MAX;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = open_file;
  driver.close = close_file;
  driver.cmp = compare;
  driver.query = query;
  driver.alloc = alloc;
  driver.get_eoa = get_eoa;
  driver.set_eoa = set_eoa;
  driver.get_eof = get_eof;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  constexpr H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), driver.fl_map);
  return driver;
}

const H5FD_class_t file_driver = describe_driver();

}  // namespace

void MemoryFile::use_in(hid_t access) {
  // The driver is registered each time, because an application may shut HDF5 down in between. The
  // property list keeps its own reference.
  hid_t id = H5FDregister(&file_driver);
  DriverInfo info{this};
  bool set = id >= 0 && H5Pset_driver(access, id, &info) >= 0;
  if (id >= 0) H5FDunregister(id);
  if (!set) throw CheckpointError("HDF5 refuses Tenon's file driver");
}

}  // namespace tenon
