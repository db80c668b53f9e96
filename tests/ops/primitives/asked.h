// What a program asked of the plugin "primitives", since somebody last cleared it: operators that
// it refused, and those that ran.
#pragma once

#include <mutex>
#include <set>
#include <string>

struct Asked {
  std::mutex mutex;
  std::set<std::string> refused, ran;  // names of operators
  std::set<std::string> offered;       // those that it offers for now, although it has none
  std::set<std::string> withheld;      // those that it refuses for now, although it has them
};
