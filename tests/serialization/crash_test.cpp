// Saving leaves the old file or the new one where the system refuses (kills_test.cpp: where it is
// killed).
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/tensor.h>
#include <tenon/modules/linear.h>
#include <tenon/serialization/checkpoint.h>

#include "../files.h"

BOOST_AUTO_TEST_SUITE(crash_test)

using namespace tenon;
using nn::StateDict;

namespace {

StateDict generation(int number) {
  return {
      {"a", full({1000}, number)}, {"b.weight", full({300, 40}, number)}, {"c", full({1}, number)}};
}
// The generation that all values in a file agree on; -1 where they do not.
int generation_of(const std::filesystem::path& path) {
  const StateDict dict = load(path);
  const int first = dict.at("c").item<int>();
  for (const auto& [key, tensor] : dict)
    for (int value : tensor.to_vector<int>())
      if (value != first) return -1;
  return first;
}

// A limit on the size of files, for a scope.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

std::string refusal(const std::filesystem::path& path, const StateDict& tensors) {
  return error_of<CheckpointError>([&] { save(path, tensors); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(leftovers_of_dead_writers_alone_are_removed) {
  TempFolder folder;
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  BOOST_REQUIRE(waitpid(gone, nullptr, 0) == gone);
  const std::string dead = ".model.h5.tmp." + std::to_string(gone), own = std::to_string(getpid());
  save(folder / "whole.h5", generation(1));
  const std::string whole = read_bytes(folder / "whole.h5");

  // The last one is of an earlier process of the same number, as there are in containers.
  const std::vector<std::string> left = {dead + ".1", dead + ".2", dead + ".3",
                                         ".model.h5.tmp." + own + ".77"};
  write_bytes(folder / left[0], "");
  write_bytes(folder / left[1],
              std::string(512, '\0') + whole.substr(512, 1000));  // the header comes last
  write_bytes(folder / left[2], whole);
  write_bytes(folder / left[3], whole);
  const std::vector<std::string> kept = {".model.h5.tmp.1",    // no number of a file
                                         ".model.h5.tmp.1.1",  // of a process that lives
                                         ".model.h5.tmp." + own + ".78",
                                         dead,
                                         dead + ".",  // not quite the pattern
                                         dead + ".x",
                                         dead + ".1.bak",
                                         ".other.h5.tmp." + std::to_string(gone) + ".1",
                                         "model.h5.tmp"};
  for (const std::string& name : kept) write_bytes(folder / name, "");
  const int own_file =
      open((folder / kept[2]).c_str(), O_RDWR | O_CLOEXEC);  // as one that another thread writes
  BOOST_REQUIRE(flock(own_file, LOCK_EX) == 0);
  write_bytes(folder / (dead + ".8"), "somebody's notes, under an unlucky name");
  write_bytes(folder / "elsewhere", "");
  std::filesystem::create_symlink("elsewhere", folder / (dead + ".9"));
  std::filesystem::create_directory(folder / (dead + ".10"));
  BOOST_REQUIRE(mkfifo((folder / (dead + ".11")).c_str(), 0600) == 0);
  std::filesystem::create_hard_link(folder / "elsewhere", folder / (dead + ".12"));

  save(folder / "model.h5", generation(1));
  close(own_file);
  for (const std::string& name : left) BOOST_TEST(!std::filesystem::exists(folder / name), name);
  for (const std::string& name : kept) BOOST_TEST(std::filesystem::exists(folder / name), name);
  for (const char* ending : {".8", ".9", ".10", ".11", ".12"})
    BOOST_TEST(std::filesystem::exists(std::filesystem::symlink_status(folder / (dead + ending))),
               ending);
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_old_file) {
  TempFolder folder;
  const std::filesystem::path path = folder / "model.h5";
  save(path, generation(1));
  const std::string before = read_bytes(path);
  for (rlim_t limit : {0, 1, 511, 512, 4096, 20'000}) {
    std::string text;
    {
      FileSizeLimit full(limit);
      text = refusal(path, generation(2));
    }
    BOOST_TEST(has(text, "cannot save checkpoint '" + path.string() + "': writing failed after"));
    BOOST_TEST(has(text, "File too large. What was there before is unchanged"));
    BOOST_TEST((read_bytes(path) == before));
    BOOST_TEST(folder.count() == 1u);
  }
  save(path, generation(3));
  BOOST_TEST(generation_of(path) == 3);
}

BOOST_AUTO_TEST_CASE(places_that_cannot_be_written_are_named) {
  TempFolder folder;
  BOOST_TEST(has(refusal(folder / "none/model.h5", generation(1)),
                 "there is no folder '" + (folder / "none").string() + "'; make it first"));
  BOOST_TEST(has(refusal(folder.path(), generation(1)), "it is a folder"));
  BOOST_TEST(has(refusal(folder.path() / "", generation(1)), "it names a folder"));
  BOOST_TEST(has(refusal("/dev/full", generation(1)), "it is not a regular file"));
  BOOST_TEST(has(refusal("/dev/null", generation(1)), "it is not a regular file"));
  write_bytes(folder / "file", "x");
  BOOST_TEST(has(refusal(folder / "file/model.h5", generation(1)), "Not a directory"));
  BOOST_TEST(has(refusal("/proc/tenon.h5", generation(1)),
                 "cannot save checkpoint '/proc/tenon.h5': folder '/proc' takes no new files"));
  BOOST_TEST(has(refusal("", generation(1)), "cannot save checkpoint '': the path is empty"));
  BOOST_TEST(folder.count() == 1u);
}

struct IsNotRoot {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result result(geteuid() != 0);
    result.message() << "root may write everywhere";
    return result;
  }
};
BOOST_AUTO_TEST_CASE(a_folder_without_permission_is_named,
                     *boost::unit_test::precondition(IsNotRoot())) {
  TempFolder folder;
  save(folder / "model.h5", generation(1));
  chmod(folder.path().c_str(), 0500);
  BOOST_TEST(has(refusal(folder / "model.h5", generation(2)),
                 "cannot write in folder '" + folder.path().string() + "': Permission denied"));
  BOOST_TEST(generation_of(folder / "model.h5") == 1);
}

BOOST_AUTO_TEST_CASE(a_symbolic_link_is_followed_and_stays) {
  TempFolder folder;
  std::filesystem::create_directory(folder / "deep");
  save(folder / "deep/real.h5", generation(1));
  std::filesystem::create_symlink("deep/real.h5", folder / "link.h5");
  save(folder / "link.h5", generation(2));
  BOOST_TEST(std::filesystem::is_symlink(folder / "link.h5"));
  BOOST_TEST(generation_of(folder / "deep/real.h5") == 2);

  std::filesystem::create_symlink("deep/new.h5", folder / "dangling.h5");
  save(folder / "dangling.h5", generation(3));
  BOOST_TEST(std::filesystem::is_symlink(folder / "dangling.h5"));
  BOOST_TEST(generation_of(folder / "deep/new.h5") == 3);

  std::filesystem::create_symlink("loop.h5", folder / "loop.h5");
  BOOST_TEST(has(refusal(folder / "loop.h5", generation(1)), "Too many levels of symbolic links"));
}

BOOST_AUTO_TEST_CASE(permissions_of_the_old_file_are_kept) {
  TempFolder folder;
  save(folder / "model.h5", generation(1));
  chmod((folder / "model.h5").c_str(), 0640);
  save(folder / "model.h5", generation(2));
  struct stat status {};
  BOOST_REQUIRE(stat((folder / "model.h5").c_str(), &status) == 0);
  BOOST_TEST((status.st_mode & 0777) == 0640u);
}

BOOST_AUTO_TEST_CASE(a_name_alone_is_saved_in_the_working_folder) {
  TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  save("model.h5", generation(4));
  BOOST_TEST(generation_of("model.h5") == 4);
  std::filesystem::current_path(before);
}

BOOST_AUTO_TEST_SUITE_END()
