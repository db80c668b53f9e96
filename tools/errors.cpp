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

}  // namespace

std::string text_of(const std::exception& error) {
  std::string text = error.what();
  if (dynamic_cast<const std::bad_alloc*>(&error)) text = kNoMemory;
  if (has_limited_memory() && text.ends_with(kNoMemory))
    text.replace(text.size() - kNoMemory.size(), text.npos,
                 "reading it needs more memory than such a file may");
  if (has_limited_memory() && text.find("cannot allocate ") != text.npos)
    text += ". Reading it needs more memory than such a file may";
  return text;
}

void print_error(const std::exception& error) {
  std::cout.flush();
  std::cerr << "tenon: " << printable_lines(text_of(error)) << "\n";
}

}  // namespace tenon::tools
