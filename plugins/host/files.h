// Which files the host is willing to read and to run. Private to the host.
#pragma once

#include <cstddef>
#include <string>

namespace tenon::plugins {

// Canonical form of an absolute path, or Refused.
std::string canonical_path(const std::string& path);
std::string parent_folder(const std::string& canonical);

// Refuses a file or folder that somebody else could have written: writable by all, or owned by
// neither root nor this user.
void require_trusted(const std::string& path, const char* what);
// The same for a folder by its canonical path, and for all above it: who may write there could put
// another in its place. Where the sticky bit is set, as it is on /tmp, only the owner of what lies
// there could.
void require_trusted_folder(const std::string& canonical);
// The canonical path of the library `name` in `folder`, which is trusted: the library lies there,
// links followed, is trusted itself and a complete shared library. Refused otherwise.
std::string trusted_library(const std::string& folder, const std::string& name, const char* what);

// The text of a trusted regular file of at most `limit` bytes.
std::string read_trusted_file(const std::string& path, size_t limit, const char* what);

// Refuses a file that is no complete shared library of this machine. Looks at the headers only. The
// dynamic linker does not check that segments lie within the file: a truncated library would end
// the process with SIGBUS.
void require_shared_library(const std::string& path);

}  // namespace tenon::plugins
