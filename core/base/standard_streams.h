// Files that must not be taken for the standard streams.
#pragma once

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace tenon {

// Gives an open file a number that is not that of a standard stream, and returns the number. If a
// program was started without standard streams or has closed them, the next file that is opened
// gets such a number, and everything that a thread prints would be written into it. Returns -1 and
// closes the file if there is no number left.
inline int beyond_standard_streams(int file) {
  if (file < 0 || file > STDERR_FILENO) return file;
  const int other = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), error = errno;
  close(file);
  errno = error;
  return other;
}

}  // namespace tenon
