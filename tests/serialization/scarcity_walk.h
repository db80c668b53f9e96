// An operation on a file, tried with too little memory at each point of it. Included by one file of
// a program, whose malloc it replaces.
#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>

#include <boost/test/unit_test.hpp>

#include <tenon/core/error.h>

#include "fuzz.h"
#include "serialization/scarce_memory.h"
#include "support/drain.h"
#include "support/expect.h"

namespace {

using tenon::Error;
using tenon::test::Deadline;
using tenon::test::drain;
using tenon::test::each_point;

size_t open_files() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                           std::filesystem::directory_iterator()));
}

// How an operation ended: the error's text, empty where there was none.
struct Ending {
  bool is_tenons = false;
  std::string text;
};

Ending run(const std::function<void()>& operation, const Scarcity& now) {
  char text[4000] = "";
  Ending ending;
  auto note = [&](const std::exception& error) {
    std::strncpy(text, error.what(), sizeof text - 1);
  };
  scarcity = now;
  counted = taken = most_taken = 0;
  __atomic_store_n(&armed, true, __ATOMIC_SEQ_CST);
  try {
    operation();
  } catch (const Error& error) {
    ending.is_tenons = true;
    note(error);
  } catch (const std::bad_alloc& error) {
    note(error);
  }
  __atomic_store_n(&armed, false, __ATOMIC_SEQ_CST);
  drain();
  ending.text = text;
  return ending;
}

// An operation on a file or in a folder, and what has to hold after it: `check` is told whether
// there was an error, and whether it came where not one byte was left, and tries the same again.
struct Subject {
  const char* name;
  std::string path;
  std::function<void()> operation;
  std::function<void(bool failed, bool starved)> check;
};

// Runs it with too little of something, and checks; `named`: the error has to name the file.
void endure(const Subject& subject, const Scarcity& now, int64_t n, bool named, int64_t& errors) {
  const auto files = open_files();
  const Ending ending = run(subject.operation, now);
  const bool failed = !ending.text.empty();
  errors += failed;
  BOOST_TEST_CONTEXT(subject.name << ", " << n << ": " << ending.text) {
    if (failed && named)
      // A relative path may have become an absolute one.
      BOOST_TEST((ending.is_tenons &&
                  (has(ending.text, subject.path + "'") || has(ending.text, subject.path + "/"))));
    BOOST_TEST(open_files() == files);
    BOOST_TEST(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL) == 0);
    BOOST_CHECK_NO_THROW(
        subject.check(failed, failed && now.last == kUnlimited && now.first != kUnlimited));
  }
}

// Each allocation fails in turn: alone, and with all after it; then there is none left for the text
// of an error.
void fail_at_each_allocation(const Subject& subject) {
  for (bool alone : {true, false}) {
    const Deadline deadline;
    run(subject.operation, {});
    const int64_t expected = counted;
    subject.check(false, false);
    int64_t errors = 0;
    const int64_t points = each_point(expected, 40, deadline, [&](int64_t n) {
      endure(subject, {.first = n, .last = alone ? n : kUnlimited}, n, alone, errors);
      return counted >= n;
    });
    BOOST_TEST_MESSAGE(subject.name << ": " << points << " of about " << expected
                                    << " allocations, " << errors << " errors");
    if (!deadline.over()) BOOST_TEST(errors > points / 2);
  }
}

// The host has no bytes, some, and more, until it has enough.
void fail_at_each_size(const Subject& subject) {
  const Deadline deadline;
  run(subject.operation, {});
  const int64_t enough = most_taken;
  subject.check(false, false);
  int64_t errors = 0;
  const int64_t most = tenon::test::fuzz_long() ? 2000 : 40;
  for (int64_t n = 0; n <= most && !deadline.over(); ++n) {
    const int64_t bytes = enough * n / most * 5 / 4;
    endure(subject, {.bytes = bytes}, n, bytes > 4096, errors);  // the text takes some
  }
  BOOST_TEST_MESSAGE(subject.name << ": up to " << enough << " bytes, " << errors << " errors");
  if (!deadline.over()) BOOST_TEST((errors > 0 && errors < most));
}

}  // namespace
