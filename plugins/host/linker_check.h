// Asks the dynamic linker what a library links, without running the library.
#pragma once

#include <string>
#include <vector>

namespace tenon::plugins {

struct LinkerReport {
  bool asked = false;
  std::string why;                     // the linker could not be asked
  std::vector<std::string> missing;    // libraries
  std::vector<std::string> versions;   // "libc.so.6: version `GLIBC_9.9' not found"
  std::vector<std::string> undefined;  // symbols
};

// `more`: names or paths of libraries that must be found, too. The linker only lists: no
// constructor and no function of a library runs, unless it asks for auditors, which are run even
// then. So do not ask for a library that has any (ElfFile::auditors).
LinkerReport ask_linker(const std::string& library, const std::vector<std::string>& more);

}  // namespace tenon::plugins
