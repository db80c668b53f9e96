// Where the libraries of plugins lie in memory, for those who have only an address of code.
#pragma once

#include <string>

#include <tenon/core/api.h>

namespace tenon::plugins {

struct LoadedLibrary {
  std::string name;  // of the plugin
  std::string path;
};

// Enters the library that dlopen gave as `handle`. It must never be closed.
void enter_library(void* handle, const LoadedLibrary& library);

// Returns the library that has code at this address, or NULL. Signal handlers may ask.
TENON_API const LoadedLibrary* library_at(const void* address) noexcept;

// Returns a library from whose code this thread was called, the innermost, or NULL. Of signal
// handlers only those may ask whose signal the thread has sent itself, as abort() does: the
// unwinder takes locks.
TENON_API const LoadedLibrary* library_on_this_stack() noexcept;

}  // namespace tenon::plugins
