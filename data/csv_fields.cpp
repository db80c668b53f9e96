#include <algorithm>
#include <cstring>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/csv_fields.h>

namespace tenon::data {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kMaxLine = size_t{1} << 28;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(const char* begin, const char* end) {
  while (begin < end && is_space(*begin)) ++begin;
  while (begin < end && is_space(end[-1])) --end;
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

CsvFields::CsvFields(const std::filesystem::path& path, char delimiter, char comment)
    : source_(path), delimiter_(delimiter), comment_(comment) {
  constexpr std::string_view mark = "\xef\xbb\xbf";  // of UTF-8, which some programs write
  fill();
  if (std::string_view(buffer_.data(), end_).starts_with(mark)) begin_ = mark.size();
}

void CsvFields::fail(const std::string& why) const {
  source_.fail(fmt::format("line {}{}", line_, why));
}

// Reads more of the file behind what is there.
bool CsvFields::fill() {
  if (at_end_) return false;
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_, begin_ = 0;
  if (end_ > kMaxLine) fail(" is longer than 256 MiB");
  buffer_.resize(std::max(buffer_.size(), end_ + std::max(kPiece, end_)));
  const size_t count = source_.read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += count;
  at_end_ = count == 0;
  return !at_end_;
}

// Finds the end of the line that begins at begin_: the first line feed or carriage return outside
// of quotes. A line feed behind a carriage return belongs to it.
bool CsvFields::find_end(size_t& end) {
  size_t at = begin_;
  bool quoted = false, field_begins = true;
  next_line_ = line_ + 1;
  // A comment ends with its line, whatever is in it.
  const bool comment = comment_ && begin_ < end_ && buffer_[begin_] == comment_;
  for (;;) {
    for (; at < end_; ++at) {
      const char c = buffer_[at];
      if ((c == '\n' || c == '\r') && !quoted) return after_cr_ = c == '\r', end = at, true;
      if (c == '\n') {
        ++next_line_;
      } else if (comment) {
        continue;
      } else if (quoted) {
        quoted = c != '"';  // "" ends the quote and begins it again
        field_begins = !quoted;
      } else if (c == '"' && field_begins) {
        quoted = true;
      } else {
        field_begins = c == delimiter_ || (field_begins && is_space(c));
      }
    }
    const size_t done = at - begin_;
    if (!fill()) break;
    at = begin_ + done;
  }
  if (quoted) fail(": the quote does not end");
  return end = end_, begin_ < end_;
}

bool CsvFields::next() {
  for (;;) {
    line_ = next_line_;
    if (after_cr_ && (begin_ < end_ || fill()) && buffer_[begin_] == '\n') ++begin_;
    after_cr_ = false;
    if (begin_ == end_ && !fill()) return false;
    size_t end = 0;
    if (!find_end(end)) return false;
    char *from = buffer_.data() + begin_, *to = buffer_.data() + end;
    begin_ = std::min(end + 1, end_);
    const bool comment = comment_ && from < to && *from == comment_;
    // Delimiters alone are a line of empty fields, also where they are tabs or spaces.
    const bool empty =
        std::all_of(from, to, [&](char c) { return is_space(c) && c != delimiter_; });
    if (comment || empty) continue;
    split(from, to);
    return true;
  }
}

void CsvFields::split(char* at, char* end) {
  fields_.clear();
  for (;;) {
    char* begin = at;
    while (begin < end && is_space(*begin) && *begin != delimiter_) ++begin;
    if (begin < end && *begin == '"') {
      // Quotes inside are moved together where they stand.
      char *from = begin + 1, *to = from, *const text = from;
      for (; from < end && !(*from == '"' && !(from + 1 < end && from[1] == '"')); ++from) {
        *to++ = *from;
        if (*from == '"') ++from;
      }
      at = std::min(from + 1, end);
      fields_.emplace_back(text, static_cast<size_t>(to - text));
      char* behind = at;
      at = std::find(at, end, delimiter_);
      if (!trimmed(behind, at).empty())
        fail(fmt::format(", field {}: there is text behind the closing quote", fields_.size()));
    } else {
      at = static_cast<char*>(std::memchr(at, delimiter_, static_cast<size_t>(end - at)));
      if (!at) at = end;
      fields_.push_back(trimmed(begin, std::max(begin, at)));
    }
    if (at == end) return;
    ++at;  // a delimiter at the end has an empty field behind it
  }
}

}  // namespace tenon::data
