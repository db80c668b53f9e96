// Libraries that a plugin opens while it runs, such as those of a vendor which need not be there.
#pragma once

#include <exception>
#include <string>

#include <dlfcn.h>

#pragma GCC visibility push(hidden)

namespace tenon::sdk {

// Opens a library as dlopen does, and writes the reason to `why_not` if it returns NULL. A
// constructor of the library may let an exception out, which counts as a reason, too. The library
// is then half loaded: a later attempt in this process may get it as it is.
inline void* open_library(const char* file, int mode, std::string& why_not) {
  // glibc declares that dlopen throws nothing. The compiler believes it, and would leave out the
  // handlers here and in all callers what has to happen while an exception passes, such as the
  // unlocking of a mutex or of a static variable that is being made.
  static void* (*volatile const open)(const char*, int) = dlopen;
  try {
    if (void* library = open(file, mode)) return library;
    const char* reason = dlerror();
    why_not = reason ? reason : "the dynamic linker gives no reason";
  } catch (const std::exception& e) {
    why_not = std::string(file) + ": let an exception out while it was loaded: " + e.what();
  } catch (...) {
    why_not = std::string(file) + ": let an exception of unknown type out while it was loaded";
  }
  return nullptr;
}

}  // namespace tenon::sdk

#pragma GCC visibility pop
