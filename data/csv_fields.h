// Takes text files apart into lines and fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tenon/data/byte_source.h>

namespace tenon::data {

class CsvFields {
 public:
  // Errors are those of ByteSource.
  CsvFields(const std::filesystem::path& path, char delimiter, char comment);
  // Reads the next line that is not empty. Returns false at the end. Throws a DataError that names
  // the line for a quote that does not end, and for text behind one.
  bool next();
  // Returns the fields of the line, without spaces around them and without quotes, until the next
  // call.
  const std::vector<std::string_view>& fields() const { return fields_; }
  // Throws a DataError that names the file and the line.
  [[noreturn]] void fail(const std::string& why) const;
  [[noreturn]] void fail_file(const std::string& why) const { source_.fail(why); }

 private:
  bool fill();
  bool find_end(size_t& end);
  void split(char* at, char* end);

  ByteSource source_;
  const char delimiter_, comment_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // what is in the buffer and not used yet
  bool at_end_ = false, after_cr_ = false;
  int64_t line_ = 0, next_line_ = 1;
  std::vector<std::string_view> fields_;
};

}  // namespace tenon::data
