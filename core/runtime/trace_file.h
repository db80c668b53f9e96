// A file in the JSON array format of chrome://tracing and Perfetto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::tracing {

// The file is complete and valid after each event, whatever ends the process: an event replaces the
// bracket that closes the list, and writes it again behind itself. So nothing is held back in
// memory, at the price of one system call for each event.
class TraceFile {
 public:
  TraceFile() = default;
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Makes the file, or empties it. Returns false if another process that still runs writes into it.
  // Throws an Error that names it if it is not a regular file or cannot be written.
  bool open(const std::string& path);
  bool is_open() const { return file_ >= 0; }
  // Adds the text of one JSON object. If it cannot be written, as when the disk is full or the file
  // too large (ulimit -f), it ends with the event before it, and a warning is logged. One thread at
  // a time.
  void add(std::string_view object);
  // Gives the file up to another process, which shares it after a fork.
  void close();

 private:
  void write_at(std::string_view text, int64_t at) const;
  int file_ = -1;
  int64_t end_ = 0;  // behind the last event
  std::string path_, buffer_;
};

// A JSON string in its quotes. Bytes that are not UTF-8 are replaced.
std::string json_text(std::string_view text);

}  // namespace tenon::tracing
