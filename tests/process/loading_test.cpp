// libtenon opened by a process that already runs, and what it asks of every thread.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include <boost/test/unit_test.hpp>
#include <elf.h>

#include <tenon/core/base/per_thread.h>
#include <tenon/core/base/pool.h>

#include "child.h"
#include "files.h"
#include "places.h"

BOOST_AUTO_TEST_SUITE(loading_test)

namespace fs = std::filesystem;

namespace {

// Bytes of static thread-local storage that a library asks for.
uint64_t thread_local_bytes(const fs::path& library) {
  const std::string file = read_bytes(library);
  Elf64_Ehdr header;
  BOOST_REQUIRE(file.size() > sizeof header);
  std::memcpy(&header, file.data(), sizeof header);
  uint64_t bytes = 0;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    BOOST_REQUIRE(header.e_phoff + (i + 1) * sizeof segment <= file.size());
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_TLS) bytes += segment.p_memsz;
  }
  return bytes;
}

int living = 0;
struct Counted {
  Counted() { ++living; }
  ~Counted() { --living; }
  int value = 0;
};

// Memory for it is there when `allowed` says so.
struct Scarce {
  static inline bool allowed = false;
  static void* operator new(size_t bytes, const std::nothrow_t& how) noexcept {
    return allowed ? ::operator new(bytes, how) : nullptr;
  }
  static void operator delete(void* p) { ::operator delete(p); }
};

// What "nm" prints for a library, with the names as they are in the source.
std::string symbols_of(const fs::path& library) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(("nm -C '" + library.string() + "' 2>&1").c_str(), "r"), pclose);
  std::string text;
  char part[4096];
  while (size_t n = std::fread(part, 1, sizeof part, pipe.get())) text.append(part, n);
  return text;
}

// Somebody else's destructor, which runs after this library's because its key is younger.
void ask_late(void*) { tenon::PerThread<Counted>::get()->value = 1; }

}  // namespace

// A fork in another thread would leave its lock in the child: see core/base/never_destroyed.h. What
// brings forks through the library is made while it is loaded.
BOOST_AUTO_TEST_CASE(no_static_variable_of_a_function_is_locked_while_it_is_made) {
  const std::string mark = "guard variable for ";
  const std::string symbols = symbols_of(tenon::test::build_dir() + "/lib/libtenon.so");
  BOOST_TEST(symbols.find("tenon::Tensor::wait() const") != symbols.npos);  // they were listed
  for (size_t at = 0; (at = symbols.find(mark, at)) != symbols.npos;) {
    at += mark.size();
    const std::string name = symbols.substr(at, symbols.find('\n', at) - at);
    // That of a template begins with the type that it returns.
    if (name.find("tenon::") != name.npos) BOOST_TEST(name == "tenon::Fork::instance()::fork");
  }
}

BOOST_AUTO_TEST_CASE(opens_where_little_static_thread_local_storage_is_left) {
  const std::string build = tenon::test::build_dir(), folder = build + "/tests/process/";
  const auto outcome = run_child({folder + "process_open_late", folder + "process_greedy.so",
                                  build + "/lib/libtenon.so", folder + "process_user.so"});
  BOOST_TEST(outcome.status == 0, outcome.output);
}

// Tables belong into memory that a thread gets when it needs them (core/base/per_thread.h).
BOOST_AUTO_TEST_CASE(static_thread_local_storage_holds_pointers_only) {
  const fs::path libraries = tenon::test::build_dir() + "/lib";
  BOOST_TEST(thread_local_bytes(libraries / "libtenon.so") <= 256u);
  int plugins = 0;
  for (auto& entry : fs::directory_iterator(libraries / "tenon/plugins"))
    if (entry.path().filename().string().starts_with("libtenon_cpu")) {
      ++plugins;
      BOOST_TEST(thread_local_bytes(entry.path()) <= 256u, entry.path().string());
    }
  BOOST_TEST(plugins > 0);
}

BOOST_AUTO_TEST_CASE(what_a_thread_keeps_ends_with_it) {
  const Counted* seen = nullptr;
  std::thread([&] {
    seen = tenon::PerThread<Counted>::get();
    BOOST_TEST(seen);
    BOOST_TEST(tenon::PerThread<Counted>::get() == seen);
    BOOST_TEST(living == 1);
  }).join();
  BOOST_TEST(living == 0);
  pthread_key_t late;
  BOOST_REQUIRE(pthread_key_create(&late, ask_late) == 0);
  std::thread([&] {
    tenon::PerThread<Counted>::get();
    pthread_setspecific(late, &late);
  }).join();
  BOOST_TEST(living == 0);
  pthread_key_delete(late);
}

BOOST_AUTO_TEST_CASE(a_thread_without_memory_for_a_table_is_told_and_may_ask_again) {
  Scarce::allowed = false;
  BOOST_TEST(!tenon::PerThread<Scarce>::get());
  Scarce::allowed = true;
  BOOST_TEST(tenon::PerThread<Scarce>::get());
}

BOOST_AUTO_TEST_SUITE_END()
