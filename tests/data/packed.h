// Data files for tests, plain and packed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#include "../files.h"
#include "../support/skipped.h"

// `bytes` as a gzip stream.
inline std::string gzip(const std::string& bytes) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, bytes.size()) + 32, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}
// The header of an IDX file.
inline std::string idx_header(uint8_t type, std::initializer_list<uint32_t> dims) {
  std::string header{0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (uint32_t dim : dims) header += big_endian(dim);
  return header;
}

// `bytes` with one to three faults: a bit, a byte or a word changed, a piece left out, put in twice
// or moved, the end cut off.
inline std::string with_faults(std::string bytes, std::mt19937& random) {
  for (uint32_t left = 1 + random() % 3; left > 0 && !bytes.empty(); --left) {
    const size_t at = random() % bytes.size(), from = random() % bytes.size(),
                 length = 1 + random() % 16;
    switch (random() % 8) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8);
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.replace(at, 4, big_endian(uint32_t{0xFFFFFFFF} >> random() % 32));
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(from, length));
        break;
      case 5:
        bytes.replace(at, length, bytes.substr(from, length));
        break;
      case 6:
        bytes.resize(at);
        break;
      case 7:
        bytes.insert(at, length, '\0');
    }
  }
  return bytes;
}

// Reads the file `path` with faults in `whole`, again and again, always the same ones: each time it
// is read, or refused by its name.
template <class E, class Read>
void read_with_faults(const std::filesystem::path& path, const std::string& whole, int times,
                      const Read& read) {
  std::mt19937 random(7);
  int refused = 0;
  for (int i = 0; i < times; ++i) {
    std::filesystem::remove(path);  // or some file systems flush what is written over a file
    write_bytes(path, with_faults(whole, random));
    try {
      read();
    } catch (const E& error) {
      ++refused;
      if (!has(error.what(), "'" + path.string() + "'"))
        BOOST_ERROR("fault " << i << ": " << error.what());
    } catch (const std::exception& error) {
      BOOST_ERROR("fault " << i << ", an error of another kind: " << error.what());
    }
  }
  BOOST_TEST(refused > times / 2);
}

// The folder of a real data set, in the folder that TENON_DATA names.
inline std::filesystem::path real_data(const std::string& name) {
  const char* root = std::getenv("TENON_DATA");
  return root ? std::filesystem::path(root) / name : std::filesystem::path();
}
// Skips a test by name where that is not at hand.
struct HasData {
  const char* name;
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) {
    const bool there = !real_data(name).empty() && std::filesystem::is_directory(real_data(name));
    return tenon::test::skipped_unless(there,
                                       std::string("TENON_DATA names no folder with ") + name);
  }
};

// Files that are no regular ones; reading them as such hangs or goes on for ever.
inline std::vector<std::pair<std::string, std::filesystem::path>> special_files(
    const TempFolder& folder) {
  const std::filesystem::path fifo = folder / "fifo", socket_path = folder / "socket";
  BOOST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path.c_str(), sizeof address.sun_path - 1);
  const int end = socket(AF_UNIX, SOCK_STREAM, 0);
  BOOST_REQUIRE(bind(end, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  close(end);
  return {{"a FIFO", fifo},
          {"a socket", socket_path},
          {"a device", "/dev/zero"},
          {"a folder", folder.path()}};
}
