// Decides which files the host reads and runs.
#pragma once

#include <cstddef>
#include <string>

namespace tenon::plugins {

// Returns the canonical form of an absolute path. Throws Refused for a relative path and for one
// that does not exist.
std::string canonical_path(const std::string& path);
// Returns the folder that contains a canonical path.
std::string parent_folder(const std::string& canonical);

// Throws Refused for a file or folder that somebody else could have written: one that is writable
// by everybody, or that belongs neither to root nor to this user.
void require_trusted(const std::string& path, const char* what);
// Does the same for a folder, given by its canonical path, and for all folders above it: somebody
// who may write there could replace it. In a folder with the sticky bit, such as /tmp, only the
// owner of an entry could.
void require_trusted_folder(const std::string& canonical);
// Returns the canonical path of the library `name` in the trusted folder `folder`. Throws Refused
// unless the library is in that folder after links were followed, is trusted itself, and is a
// complete shared library.
std::string trusted_library(const std::string& folder, const std::string& name, const char* what);

// Throws a PluginError if a file could not be opened because too many are open. Nothing is refused
// for that: the next use tries again. `what` is what was to be opened.
void require_descriptors(int error, const std::string& what);

// Returns the text of a trusted regular file of at most `limit` bytes. Throws Refused otherwise.
std::string read_trusted_file(const std::string& path, size_t limit, const char* what);

// Throws Refused for a file that is not a complete shared library for this machine. It reads only
// the headers. The dynamic linker does not check that the segments are inside the file, so a
// truncated library would end the process with SIGBUS.
void require_shared_library(const std::string& path);

}  // namespace tenon::plugins
