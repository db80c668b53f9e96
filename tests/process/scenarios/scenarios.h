// Programs in small: each ends its process in a way of its own. A scenario returns main's result.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include <tenon/tenon.h>

using Scenario = int (*)();
std::map<std::string, Scenario>& scenarios();

struct Named {
  Named(const char* name, Scenario scenario) { scenarios()[name] = scenario; }
};
#define SCENARIO(name)                           \
  static int name();                             \
  static const Named name##_listed(#name, name); \
  static int name()

// Ends the process at once where something is wrong.
#define MUST(condition)                                           \
  do {                                                            \
    if (!(condition)) {                                           \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::fflush(stdout);                                        \
      _exit(9);                                                   \
    }                                                             \
  } while (false)

// A product that takes all threads of the pool, and a gradient. True where the numbers are right.
bool computes(const tenon::Device& device = {});
// Runs `body` in a child, which ends by exit(), and returns its status: 1000 and a signal's number
// where it was killed.
int in_child(const std::function<void()>& body);
// What of a tenon::DeviceError `body` throws; "" where it throws nothing.
std::string device_error(const std::function<void()>& body);
