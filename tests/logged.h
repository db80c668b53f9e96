// What a piece of a test writes to stderr, such as a warning of the logger.
#pragma once

#include <cstdio>
#include <string>

#include <unistd.h>

namespace tenon::test {

// What `body` writes to stderr.
template <class F>
inline std::string logged(F&& body) {
  std::fflush(stderr);
  std::FILE* file = std::tmpfile();
  const int before = dup(2);
  dup2(fileno(file), 2);
  body();
  std::fflush(stderr);
  dup2(before, 2);
  close(before);
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace tenon::test
