// Checkpoints that Tenon would not write, with checksums that are right.
#pragma once

#define XXH_INLINE_ALL
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include <hdf5.h>
#include <xxhash.h>

#include "../files.h"

// Bob Jenkins's lookup3 ("hashlittle"), with which HDF5 checks its metadata (HDF5 File Format
// Specification, appendix).
inline uint32_t lookup3(const unsigned char* k, size_t length) {
  auto rot = [](uint32_t x, int n) { return x << n | x >> (32 - n); };
  auto word = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4 && at + i < length; ++i) value |= uint32_t{k[at + i]} << (8 * i);
    return value;
  };
  uint32_t a = 0xdeadbeef + static_cast<uint32_t>(length), b = a, c = a;
  if (length == 0) return c;
  size_t at = 0;
  for (; length - at > 12; at += 12) {
    a += word(at), b += word(at + 4), c += word(at + 8);
    a -= c, a ^= rot(c, 4), c += b;
    b -= a, b ^= rot(a, 6), a += c;
    c -= b, c ^= rot(b, 8), b += a;
    a -= c, a ^= rot(c, 16), c += b;
    b -= a, b ^= rot(a, 19), a += c;
    c -= b, c ^= rot(b, 4), b += a;
  }
  a += word(at), b += word(at + 4), c += word(at + 8);
  c ^= b, c -= rot(b, 14);
  a ^= c, a -= rot(c, 11);
  b ^= a, b -= rot(a, 25);
  c ^= b, c -= rot(b, 16);
  a ^= c, a -= rot(c, 4);
  b ^= a, b -= rot(a, 14);
  c ^= b, c -= rot(b, 24);
  return c;
}

// Writes header and checksums, as docs/checkpoints.md describes them, in front of the HDF5 data
// that `bytes` has from 512 on.
inline void seal(std::string& bytes, const std::string& note = "") {
  auto put = [&](size_t at, auto value) { std::memcpy(bytes.data() + at, &value, sizeof value); };
  auto put_checksum = [&](size_t at, size_t from, size_t count) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data() + from, count);
    put(at, uint64_t{hash.low64});
    put(at + 8, uint64_t{hash.high64});
  };
  std::memset(bytes.data(), 0, 512);
  std::memcpy(bytes.data(), "\x89TENON\r\n", 8);
  put(8, uint32_t{1});
  put(12, uint32_t{512});
  put(16, uint64_t{bytes.size()});
  put_checksum(24, 512, bytes.size() - 512);
  std::memcpy(bytes.data() + 64, note.data(), note.size());
  put_checksum(496, 0, 496);
}

inline uint64_t number_at(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Makes all checksums right again of a checkpoint that has some of its pieces.
inline void reseal(std::string& bytes) {
  const auto put_checksum = [&](size_t at, size_t from, size_t count) {
    const XXH128_hash_t hash = XXH3_128bits(bytes.data() + from, count);
    const uint64_t halves[] = {hash.low64, hash.high64};
    std::memcpy(bytes.data() + at, halves, sizeof halves);
  };
  const size_t pieces_at = number_at(bytes, 40);
  for (size_t begin = 512, to = pieces_at; begin < pieces_at; to += 16) {
    const size_t end = std::min<size_t>(((begin >> 16) + 1) << 16, pieces_at);
    put_checksum(to, begin, end - begin);
    begin = end;
  }
  put_checksum(48, pieces_at, bytes.size() - pieces_at);
  put_checksum(24, 512, bytes.size() - 512);
  put_checksum(496, 0, 496);
}

// Makes a checkpoint that Tenon has saved one of the time before there were indexes.
inline std::string without_index(std::string bytes) {
  std::memset(bytes.data() + 456, 0, 24);
  reseal(bytes);
  return bytes;
}

// Makes the checksum of the HDF5 object header around `at` right again. Version 2: "OHDR", version,
// flags, times, limits, length, messages, checksum.
inline void reseal_object_header(std::string& bytes, size_t at) {
  const size_t begin = bytes.rfind("OHDR", at);
  const unsigned flags = static_cast<unsigned char>(bytes.at(begin + 5)), width = 1u << (flags & 3);
  const size_t prefix = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data() + begin + prefix, width);
  const size_t covered = prefix + width + length;
  const uint32_t sum =
      lookup3(reinterpret_cast<const unsigned char*>(bytes.data()) + begin, covered);
  std::memcpy(bytes.data() + begin + covered, &sum, 4);
}

// What a crafted checkpoint's attributes are like.
struct TextKind {
  H5T_cset_t charset = H5T_CSET_UTF8;
  H5T_str_t padding = H5T_STR_NULLPAD;
};

// A checkpoint made with HDF5 itself.
class CraftedCheckpoint {
 public:
  explicit CraftedCheckpoint(const std::filesystem::path& path,
                             H5F_libver_t newest = H5F_LIBVER_V18)
      : path_(path) {
    const hid_t creation = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_userblock(creation, 512);
    H5Pset_est_link_info(creation, 8,
                         16);  // room for the names in the first piece of the root group
    H5Pset_link_creation_order(creation, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, newest);
    file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
    H5Pclose(creation);
    H5Pclose(access);
    const uint32_t version = 1;
    const hid_t space = H5Screate(H5S_SCALAR),
                attribute = H5Acreate2(file, "format_version", H5T_STD_U32LE, space, H5P_DEFAULT,
                                       H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_UINT32, &version);
    H5Aclose(attribute);
    H5Sclose(space);
  }

  // A contiguous f32 dataset in `group` (the root group by default), written or without memory of
  // its own in the file.
  void add(const std::string& name, const std::vector<hsize_t>& dims, bool written,
           hid_t group = -1, TextKind text = {}) {
    const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(creation, written ? H5D_ALLOC_TIME_EARLY : H5D_ALLOC_TIME_LATE);
    const hid_t dataset = H5Dcreate2(group < 0 ? file : group, name.c_str(), H5T_IEEE_F32LE, space,
                                     H5P_DEFAULT, creation, H5P_DEFAULT);
    write_text(dataset, "dtype", "f32", text);
    H5Dclose(dataset);
    H5Pclose(creation);
    H5Sclose(space);
  }

  static void write_text(hid_t object, const char* name, std::string value, TextKind kind) {
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    value.resize(16, kind.padding == H5T_STR_SPACEPAD ? ' ' : '\0');
    H5Tset_size(type, value.size());
    H5Tset_cset(type, kind.charset);
    H5Tset_strpad(type, kind.padding);
    const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, type, value.data());
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
  }

  // Ends the file, with checksums. `change` may alter its bytes first.
  void finish(const std::string& note = "", const std::function<void(std::string&)>& change = {}) {
    H5Fclose(file);
    std::string bytes = read_bytes(path_);
    if (change) change(bytes);
    seal(bytes, note);
    write_bytes(path_, bytes);
  }

  hid_t file;

 private:
  std::filesystem::path path_;
};
