#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <tenon/serialization/checkpoint.h>

#include "fuzz.h"
#include "fuzz/targets.h"
#include "places.h"
#include "serialization/weights.h"
#include "support/sanitized.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace tenon::test::fuzz {
namespace {

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Makes an input of a seed. What it does depends on the two numbers alone.
class Change {
 public:
  Change(const Target& target, uint64_t seed, uint64_t number)
      : target_(target), random_(seed * 0x9e3779b97f4a7c15 + number) {}

  std::string input(uint64_t number) {
    std::string text = target_.seeds[number % target_.seeds.size()];
    for (size_t n = below(4) + 1; n-- > 0;) change(text);
    return target_.finish ? target_.finish(std::move(text)) : text;
  }

 private:
  void change(std::string& text) {
    const size_t at = below(text.size() + 1),
                 count = below(std::min<size_t>(text.size() - at, 24) + 1);
    switch (below(target_.words.empty() ? 6 : 8)) {
      case 0:
        text.erase(at, count);
        break;
      case 1:
        text.insert(at, text.substr(below(text.size() + 1), 24));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 3:
        if (at < text.size()) text[at] ^= static_cast<char>(1 << below(8));
        break;
      case 4: {
        const std::string& other = target_.seeds[below(target_.seeds.size())];
        text.replace(at, count, other.substr(below(other.size() + 1), 64));
        break;
      }
      case 5: {
        const size_t bytes = size_t{1} << below(4);
        const uint64_t shifted = uint64_t{1} << below(64);
        if (at + bytes <= text.size())
          text.replace(at, bytes, fuzz::number(shifted - below(2) * (below(2) + 1), bytes));
        break;
      }
      case 6:
        text.insert(at, word());
        break;
      default:
        text.replace(at, count, word());
    }
  }
  size_t below(size_t count) { return random_() % count; }
  const std::string& word() { return target_.words[below(target_.words.size())]; }

  const Target& target_;
  std::mt19937_64 random_;
};

// What a sanitizer says last of an input that ends the process. Boost says it of signals.
char last_words[128];
void say_last_words() {
  if (write(STDERR_FILENO, last_words, std::char_traits<char>::length(last_words)) < 0) return;
}

void announce(const Target& target, uint64_t seed, uint64_t number) {
  std::snprintf(last_words, sizeof last_words,
                "%s: TENON_FUZZ_SEED=%llu TENON_FUZZ_INPUT=%llu makes this input again\n",
                target.name, static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(number));
  BOOST_TEST_CHECKPOINT(last_words);
}

// Limits the memory of this process, for a scope, to what it has and what an input may need: the
// values of a packed tensor are 1032 times as large as its bytes at most, and headers take 15 times
// their length. Threads reserve some as well.
class MemoryLimit {
 public:
  MemoryLimit() {
    getrlimit(RLIMIT_AS, &before_);
    unsigned long long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    now_ = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  void allow_for(size_t input_bytes) {
    if (kSanitized || now_ == 0) return;  // its own memory is beyond any limit
    constexpr uint64_t kThreads = uint64_t{256} << 20;
    const rlimit limit{std::min<rlim_t>(now_ + kThreads + 1100 * input_bytes, before_.rlim_max),
                       before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }

 private:
  rlimit before_{};
  uint64_t now_ = 0;
};

// Which share the time of a test (CTest's) that is one suite.
double cases_in_this_suite() {
  using namespace boost::unit_test;
  const test_unit_id suite = framework::current_test_case().p_parent_id;
  return static_cast<double>(framework::get<test_suite>(suite).size());
}

bool is_refused_without_fault(const Target& target, std::string_view input) {
  try {
    return target.one_input(input);
  } catch (const std::exception& error) {
    BOOST_FAIL(last_words << "it has thrown: " << error.what());
  }
  return true;
}

}  // namespace

void try_inputs(const Target& target) {
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(say_last_words);
  const uint64_t seed = number_from("TENON_FUZZ_SEED", 1),
                 only = number_from("TENON_FUZZ_INPUT", UINT64_MAX);
  for (const std::string& whole : target.seeds) {
    if (!target.seeds_are_whole) break;
    std::snprintf(last_words, sizeof last_words, "%s: a seed\n", target.name);
    BOOST_TEST(!is_refused_without_fault(target, target.finish ? target.finish(whole) : whole));
  }
  MemoryLimit memory;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration<double>(fuzz_seconds() / cases_in_this_suite());
  const uint64_t most = fuzz_long() ? UINT64_MAX : kSanitized ? target.runs / 4 : target.runs;
  uint64_t tried = 0, refused = 0;
  for (uint64_t i = only == UINT64_MAX ? 0 : only; tried < most; ++i) {
    if (fuzz_long() && std::chrono::steady_clock::now() > end) break;
    announce(target, seed, i);
    const std::string input = Change(target, seed, i).input(i);
    memory.allow_for(input.size());
    refused += is_refused_without_fault(target, input);
    ++tried;
    if (only != UINT64_MAX) return;
  }
  BOOST_TEST_MESSAGE(target.name << ": " << tried << " inputs, " << refused << " refused");
  BOOST_TEST(refused > tried / 10);
}

bool load_is_refused(std::string_view bytes) {
  static BytesFile file;
  file.set(bytes);
  return is_refused<CheckpointError>([] {
    try {
      load(file.path());
      inspect(file.path());
    } catch (const CheckpointError& error) {
      if (!has(error.what(), file.path().string()))
        throw std::runtime_error(std::string("an error does not name the file: ") + error.what());
      throw;
    }
  });
}

std::vector<std::string> reference_files(std::initializer_list<const char*> names) {
  std::vector<std::string> files;
  for (const char* name : names) files.push_back(read_bytes(weights_file(name)));
  return files;
}

std::vector<std::string> seed_files(std::string_view ending) {
  const std::filesystem::path folder =
      std::filesystem::path(reference_dir()).parent_path() / "fuzz" / "seeds";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().native().ends_with(ending)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());  // so that a number means the same everywhere
  std::vector<std::string> files;
  for (const std::filesystem::path& path : paths) files.push_back(read_bytes(path));
  return files;
}

std::string number(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string archive_of(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file, directory;
  for (const auto& [name, bytes] : members) {
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::string common = std::string(8, '\0') + number(crc, 4) + number(bytes.size(), 4) +
                               number(bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(0x140014, 4) + common + std::string(10, '\0') +
                 number(file.size(), 4) + name;
    file += "PK\3\4" + number(0x14, 2) + common + name + bytes;
  }
  return file + directory + "PK\5\6" + number(0, 4) + number(members.size(), 2) +
         number(members.size(), 2) + number(directory.size(), 4) + number(file.size(), 4) +
         number(0, 2);
}

}  // namespace tenon::test::fuzz
