// Writes a file from its beginning to its end and looks at what it has written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <tenon/serialization/checksum.h>

namespace tenon {

// Every chunk is read back as soon as it is written, compared, and summed as it was read. Large
// amounts are divided among the threads of the host, and one more thread tells the system what to
// store, which on many file systems waits for the disk.
class CheckedWriter {
 public:
  // Throws an error: what has failed, and the system's number of the reason, or 0.
  using Fail = std::function<void(const std::string& what, int error)>;
  explicit CheckedWriter(Fail fail);
  ~CheckedWriter();
  CheckedWriter(const CheckedWriter&) = delete;
  // Says where to write, before anything else. The file stays open until stop() or the destructor.
  void open(int file) { file_ = file; }
  // Ends the work that goes on beside.
  void stop() noexcept;

  // Appends bytes. Large amounts are not copied. After an error, nothing more can be written.
  void append(const void* bytes, size_t count);
  uint64_t size() const { return size_; }  // with the header
  // Returns the checksums of all pieces (header.h) so far. What is appended later belongs to none.
  std::vector<Checksum> end_pieces();
  // Returns the checksum of everything that was appended.
  Checksum body_checksum();
  // Writes the header, which comes in front of everything and was zeros until now.
  void finish(std::span<const std::byte> header);

 private:
  class Sender;
  class ReadBack;
  using Bytes = std::span<const std::byte>;

  void write(Bytes first, Bytes rest);
  void write_and_sum(Bytes chunk, uint64_t offset, uint64_t number);
  void write_and_read_back(Bytes chunk, uint64_t offset, std::byte* read_back) const;
  void flush();
  void send();

  const Fail fail_;
  int file_ = -1;
  uint64_t size_ = 0;     // bytes appended
  uint64_t written_ = 0;  // bytes written
  std::vector<std::byte> pending_;
  Checksummer body_;
  // Which chunk of a write the body's checksum gets next: that one alone follows the order.
  std::atomic<uint64_t> turn_{0};
  std::vector<Checksum> pieces_;
  bool in_pieces_ = true;
  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> spare_;  // memory for what is read back
  std::unique_ptr<Sender> sender_;
};

}  // namespace tenon
