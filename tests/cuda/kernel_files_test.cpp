// The files in which the cuda plugin keeps what it compiled: damaged ones, those of others, and
// many writers at once.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "files.h"
#include "rtc/disk_cache.h"

using namespace tenon::cuda;

namespace {

std::filesystem::path only_file(const TempFolder& folder) {
  BOOST_REQUIRE(folder.count() == 1u);
  return std::filesystem::directory_iterator(folder.path())->path();
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}
std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_hold_what_was_stored) {
  TempFolder folder;
  const DiskCache cache((folder / "a/b").string());
  BOOST_TEST(!cache.find("key"));
  cache.store("key", "value");
  cache.store("empty", "");
  BOOST_TEST(cache.find("key").value() == "value");
  BOOST_TEST(cache.find("empty").value() == "");
  BOOST_TEST(!cache.find("another"));
  cache.store("key", "later");
  BOOST_TEST(DiskCache((folder / "a/b").string()).find("key").value() == "later");
  const DiskCache off("");
  off.store("key", "value");
  BOOST_TEST(!off.find("key"));
}

// Any byte that is changed, and any length, is found out; what is stored next takes the place.
BOOST_AUTO_TEST_CASE(damaged_files_are_passed_over) {
  TempFolder folder;
  const DiskCache cache(folder.path().string());
  const std::string value(300, 'v');
  cache.store("the key", value);
  const auto path = only_file(folder);
  const std::string whole = read(path);
  for (size_t at = 0; at < whole.size(); at += 3) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    write(path, changed);
    BOOST_TEST(!cache.find("the key"));
    write(path, whole.substr(0, at));
    BOOST_TEST(!cache.find("the key"));
  }
  write(path, whole + "x");
  BOOST_TEST(!cache.find("the key"));
  cache.store("the key", value);
  BOOST_TEST(cache.find("the key").value() == value);
  // The whole of another entry under this name.
  cache.store("other key", value);
  for (auto& file : std::filesystem::directory_iterator(folder.path()))
    if (file.path() != path) std::filesystem::rename(file.path(), path);
  BOOST_TEST(!cache.find("the key"));
}

BOOST_AUTO_TEST_CASE(what_others_may_write_is_not_read) {
  using std::filesystem::perms;
  TempFolder folder;
  const DiskCache cache(folder.path().string());
  cache.store("key", "value");
  const auto path = only_file(folder);
  std::filesystem::permissions(path, perms::others_write, std::filesystem::perm_options::add);
  BOOST_TEST(!cache.find("key"));
  std::filesystem::permissions(path, perms::others_write, std::filesystem::perm_options::remove);
  BOOST_TEST(cache.find("key").has_value());
  std::filesystem::permissions(folder.path(), perms::group_write,
                               std::filesystem::perm_options::add);
  BOOST_TEST(!cache.find("key"));
  cache.store("second", "value");
  BOOST_TEST(folder.count() == 1u);
  std::filesystem::permissions(folder.path(), perms::group_write,
                               std::filesystem::perm_options::remove);
  // A link is followed neither as the folder nor as a file.
  TempFolder elsewhere;
  std::filesystem::create_directory_symlink(folder.path(), elsewhere / "link");
  BOOST_TEST(!DiskCache((elsewhere / "link").string()).find("key"));
  std::filesystem::rename(path, elsewhere / "moved");
  std::filesystem::create_symlink(elsewhere / "moved", path);
  BOOST_TEST(!cache.find("key"));
}

BOOST_AUTO_TEST_CASE(the_oldest_files_go) {
  TempFolder folder;
  const DiskCache cache(folder.path().string(), 40000);
  const std::string value(5000, 'v');
  write(folder / "of others.txt", "stays");
  cache.store("first", value);
  for (int i = 0; i < 20; ++i) {
    cache.store("key " + std::to_string(i), value);
    BOOST_TEST(cache.find("first").has_value());  // and so was used last
    uint64_t total = 0;
    for (auto& file : std::filesystem::directory_iterator(folder.path())) total += file.file_size();
    BOOST_TEST(total <= 40005u);
  }
  BOOST_TEST(!cache.find("key 0"));
  BOOST_TEST(cache.find("key 19").has_value());
  BOOST_TEST(std::filesystem::exists(folder / "of others.txt"));
  cache.store("too large", std::string(20000, 'v'));
  BOOST_TEST(!cache.find("too large"));
}

BOOST_AUTO_TEST_CASE(many_may_store_at_once) {
  TempFolder folder;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const DiskCache cache(folder.path().string());
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(i % 5), value(1000 + i % 5, 'v');
        cache.store(key, value);
        const auto found = cache.find(key);
        wrong += !found || *found != value;
      }
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(folder.count() == 5u);
}

BOOST_AUTO_TEST_CASE(the_folder_is_chosen_by_variables) {
  setenv("TENON_CUDA_KERNEL_CACHE", "/somewhere/else", 1);
  BOOST_TEST(DiskCache::default_folder() == "/somewhere/else");
  setenv("TENON_CUDA_KERNEL_CACHE", "off", 1);
  BOOST_TEST(DiskCache::default_folder() == "");
  unsetenv("TENON_CUDA_KERNEL_CACHE");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  setenv("HOME", "/home/someone", 1);
  BOOST_TEST(DiskCache::default_folder() == "/cache/tenon/cuda");
  setenv("XDG_CACHE_HOME", "relative", 1);
  BOOST_TEST(DiskCache::default_folder() == "/home/someone/.cache/tenon/cuda");
}
