#include "errors.h"

#include <iostream>
#include <new>
#include <string_view>

#include <tenon/core/base/printable.h>

#include "confined.h"

namespace tenon::tools {
namespace {

// The end of the library's errors of this kind.
constexpr std::string_view kNoMemory = "the host has no memory left for it";

// Replaces `library`, what an error of the library says of an option, by the command's word.
void replace(std::string& text, std::string_view library, std::string_view word) {
  for (size_t at = 0; (at = text.find(library, at)) != text.npos; at += word.size())
    text.replace(at, library.size(), word);
}

// What a file is refused with that another program has changed.
constexpr std::string_view kChanged[] = {"changed by another program, since it was written",
                                         "its header is damaged (checksum does not match)"};

}  // namespace

std::string text_of(const std::exception& error) {
  std::string text = error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error)) text = kNoMemory;
  if (has_limited_memory() && text.ends_with(kNoMemory))
    text.replace(text.size() - kNoMemory.size(), text.npos,
                 "reading it needs more memory than such a file may");
  if (has_limited_memory() && text.find("cannot allocate ") != text.npos)
    text += ". Reading it needs more memory than such a file may";
  // Texts of a file may look like an option as well, but they are within other words.
  replace(text, ". Load one of its parts with .section = \"",
          ". Read one of its parts with --section \"");
  replace(text, "Load it with .verify = false to read it", "Give --no-verify to read it");
  if (text.starts_with("load: .only '")) text.replace(0, 11, "--only");
  if (text.starts_with("load: ")) text.erase(0, 6);
  for (const std::string_view changed : kChanged)
    if (text.ends_with(changed))
      text +=
          ". If another program has changed it, the commands of `tenon checkpoint` but verify read "
          "it with --no-verify";
  return text;
}

void print_error(const std::exception& error) {
  std::cout.flush();
  std::cerr << "tenon: " << printable_lines(text_of(error)) << "\n";
}

}  // namespace tenon::tools
