// tenon-hdf5-reader: reads an HDF5 file that Tenon did not write, for libtenon, which starts it and
// speaks with it over the standard input, a socket (tenon/serialization/hdf5_wire.h). The file is
// open as number 3. Or it reads the image of a checkpoint that has no index, page by page. HDF5 may
// crash, run out of memory or never end here: this process has no privileges and can be killed at
// any time.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <unordered_map>

#include <hdf5.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tenon/serialization/hdf5_memory.h>
#include <tenon/serialization/hdf5_wire.h>

#include "checkpoint.h"
#include "contents.h"
#include "sandbox.h"
#include "values.h"

namespace tenon::reader {
namespace {

constexpr int kSocket = 0, kFile = 3;

// libtenon is gone, or does not keep to the protocol.
[[noreturn]] void leave() { _exit(2); }

void send_bytes(const void* bytes, size_t count) {
  for (auto* at = static_cast<const char*>(bytes); count > 0;) {
    const ssize_t n = write(kSocket, at, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) leave();
    at += n, count -= static_cast<size_t>(n);
  }
}

bool receive_bytes(void* bytes, size_t count) {
  for (auto* at = static_cast<char*>(bytes); count > 0;) {
    const ssize_t n = read(kSocket, at, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, count -= static_cast<size_t>(n);
  }
  return true;
}

void send_frame(hdf5_wire::FrameKind kind, const void* bytes, size_t count) {
  const hdf5_wire::Frame frame{hdf5_wire::kMagic, kind, count};
  send_bytes(&frame, sizeof frame);
  send_bytes(bytes, count);
}
void send_text(hdf5_wire::FrameKind kind, std::string_view text) {
  send_frame(kind, text.data(), std::min<size_t>(text.size(), hdf5_wire::kMaxTextBytes));
}

void send_contents(const FileContents& contents) {
  std::string bytes;
  const hdf5_wire::Contents head{contents.looks_like_checkpoint,
                                 static_cast<uint32_t>(contents.items.size())};
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  for (const Item& item : contents.items) {
    hdf5_wire::Entry entry{};
    const size_t text = std::min<size_t>(item.why.size(), hdf5_wire::kMaxTextBytes);
    entry.kind = item.kind, entry.type = item.type;
    entry.rank = static_cast<uint8_t>(item.dims.size());
    entry.path_bytes = static_cast<uint32_t>(item.path.size());
    entry.text_bytes = static_cast<uint32_t>(text);
    std::copy(item.dims.begin(), item.dims.end(), entry.dims);
    bytes.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    bytes.append(item.path).append(item.why, 0, text);
    if (bytes.size() > hdf5_wire::kMaxContentsBytes) throw Fault("its names are too long");
  }
  send_frame(hdf5_wire::FrameKind::contents, bytes.data(), bytes.size());
}

std::span<const std::byte> map_file() {
  struct stat status {};
  if (fstat(kFile, &status) != 0 || status.st_size <= 0) throw Fault("the file is empty");
  const auto size = static_cast<size_t>(status.st_size);
  // If the file is cut off meanwhile, this process ends, and libtenon says so.
  void* image = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, kFile, 0);
  if (image == MAP_FAILED)
    throw Fault(std::string("the file cannot be mapped into memory: ") + std::strerror(errno));
  close(kFile);
  return {static_cast<const std::byte*>(image), size};
}

// Until libtenon closes its end, which it does when it ends, too. A signal at the end of the parent
// (PR_SET_PDEATHSIG) would come when the thread ends that has opened the file.
void answer_requests(hid_t file, const FileContents& contents) {
  for (uint64_t number = 0; receive_bytes(&number, sizeof number);) {
    if (number >= contents.items.size() ||
        contents.items[number].kind != hdf5_wire::EntryKind::tensor)
      leave();
    try {
      read_values(file, contents.items[number], [](const void* bytes, size_t count) {
        send_frame(hdf5_wire::FrameKind::values, bytes, count);
      });
    } catch (const Fault& fault) {
      send_text(hdf5_wire::FrameKind::fault, fault.what());
    } catch (const std::bad_alloc&) {
      send_text(hdf5_wire::FrameKind::fault, "reading it takes more memory than such a file may");
    }
  }
}

void give_up_privileges(uint64_t bytes, uint64_t seconds) {
  H5dont_atexit();
  check(H5open(), "start");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);  // no plugins for filters
  constexpr uint64_t kMemory = uint64_t{768} << 20, kMemoryPerByte = 6;
  limit_resources(kMemory + kMemoryPerByte * bytes, seconds);
  forbid_system_calls();  // where the system offers it; docs/checkpoints.md
}

Handle open_file(MemoryFile& memory, const char* what) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make access properties");
  memory.use_in(access);
  return Handle(H5Fopen("file", H5F_ACC_RDONLY, access), H5Fclose, what);
}

void serve(uint64_t seconds) {
  close_other_files(kFile + 1);
  const std::span<const std::byte> image = map_file();
  give_up_privileges(image.size(), seconds);
  MemoryFile memory(image);
  const Handle file = open_file(memory, "read the file");
  const FileContents contents = list_contents(file, image.size());
  send_contents(contents);
  answer_requests(file, contents);
  _exit(0);  // nothing that HDF5 would do now matters any more
}

// The bytes of a checkpoint, of which libtenon sends a page when it is read first.
class RemoteImage {
 public:
  explicit RemoteImage(uint64_t bytes) : bytes_(bytes) {}
  void read(uint64_t offset, size_t count, char* to) {
    while (count > 0) {
      const uint64_t within = offset % hdf5_wire::kPageBytes;
      const std::string& page = page_at(offset / hdf5_wire::kPageBytes);
      const size_t n = std::min<uint64_t>(count, page.size() - within);
      std::memcpy(to, page.data() + within, n);
      to += n, offset += n, count -= n;
    }
  }

 private:
  const std::string& page_at(uint64_t number) {
    const auto [page, fresh] = pages_.try_emplace(number);
    if (fresh) {
      send_frame(hdf5_wire::FrameKind::page, &number, sizeof number);
      page->second.resize(std::min(hdf5_wire::kPageBytes, bytes_ - number * hdf5_wire::kPageBytes));
      if (!receive_bytes(page->second.data(), page->second.size())) leave();
    }
    return page->second;
  }

  const uint64_t bytes_;
  std::unordered_map<uint64_t, std::string> pages_;
};

void serve_checkpoint(uint64_t seconds, uint64_t bytes) {
  close_other_files(kSocket + 1);
  give_up_privileges(bytes, seconds);
  RemoteImage image(bytes);
  MemoryFile memory(FileImage{bytes, [&](uint64_t offset, size_t count, void* to) {
                                image.read(offset, count, static_cast<char*>(to));
                              }});
  const Handle file = open_file(memory, "read the checkpoint");
  const std::string index = index_of_checkpoint(file, bytes);
  send_frame(hdf5_wire::FrameKind::index, index.data(), index.size());
  _exit(0);
}

}  // namespace
}  // namespace tenon::reader

int main(int argc, char** argv) {
  using namespace tenon;
  struct stat socket {};
  if (argc < 2 || argc > 3 || fstat(0, &socket) != 0 || !S_ISSOCK(socket.st_mode)) {
    std::fputs("tenon-hdf5-reader is started by libtenon, and of no use otherwise\n", stderr);
    return 2;
  }
  try {
    const uint64_t seconds = std::strtoull(argv[1], nullptr, 10);
    if (argc == 3)
      reader::serve_checkpoint(seconds, std::strtoull(argv[2], nullptr, 10));
    else
      reader::serve(seconds);
  } catch (const std::bad_alloc&) {
    reader::send_text(hdf5_wire::FrameKind::failure,
                      "reading it takes more memory than such a file may");
  } catch (const std::exception& error) {
    reader::send_text(hdf5_wire::FrameKind::failure, error.what());
  }
  _exit(1);
}
