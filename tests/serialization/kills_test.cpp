// A process that is killed at any moment while it saves leaves a whole checkpoint, which is the
// last one or the one before, and no more files than the next save takes away. The long form
// (tests/fuzz.h) kills 500 times for each way to save.
#include <algorithm>
#include <cstdlib>
#include <random>

#include <boost/test/unit_test.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/ops/creation.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_manager.h>

#include "files.h"
#include "fuzz.h"
#include "support/sanitized.h"

using namespace tenon;
using nn::StateDict;

namespace {

constexpr const char *kFolderVariable = "TENON_TEST_SAVE_LOOP", *kKindVariable = "TENON_TEST_KIND",
                     *kBytesVariable = "TENON_TEST_BYTES";

// All of them together have so many bytes, and say the same number.
StateDict generation(int number, int64_t bytes) {
  const int64_t floats = bytes / 4;
  return {{"a", full({floats / 4}, number)},
          {"b.weight", full({floats / 2}, number)},
          {"c", full({1}, number)},
          {"d", full({floats / 4}, number)}};
}
CheckpointValues as_values(const StateDict& tensors) {
  CheckpointValues values;
  for (const auto& [key, tensor] : tensors) values[key] = tensor;
  return values;
}
// The number that all elements say; -1 where they do not agree.
int generation_of(const std::vector<Tensor>& tensors) {
  const int first = tensors.front().flatten()[0].item<int>();
  for (const Tensor& tensor : tensors)
    for (float value : tensor.to_vector<float>())
      if (value != static_cast<float>(first)) return -1;
  return first;
}
int generation_of(const Checkpoint& run) {
  std::vector<Tensor> tensors;
  for (const auto& [key, value] : run.user) tensors.push_back(value.tensor());
  return generation_of(tensors);
}

// A way to save for ever, and to read what is there.
struct Way {
  const char* name;
  void (*save_for_ever)(const std::filesystem::path& folder, int64_t bytes, void (*saved)());
  int (*read)(const std::filesystem::path& folder);
  size_t most_files;  // that are left, whenever it is killed
};

void save_files(const std::filesystem::path& path, int64_t bytes, const SaveOptions& options,
                void (*saved)()) {
  for (int number = 1;; ++number) {
    save(path, generation(number, bytes), options);
    if (number == 1) saved();
  }
}
int read_file(const std::filesystem::path& folder) {
  std::vector<Tensor> tensors;
  for (const auto& [key, tensor] : load(folder / "model.h5")) tensors.push_back(tensor);
  return generation_of(tensors);
}
int read_run(const std::filesystem::path& folder) {
  Checkpoint run;
  load(folder / "model.h5", run);
  return generation_of(run);
}

const Way kWays[] = {{"plain",
                      [](const std::filesystem::path& folder, int64_t bytes, void (*saved)()) {
                        save_files(folder / "model.h5", bytes, {}, saved);
                      },
                      read_file, 2},
                     {"sharded",
                      [](const std::filesystem::path& folder, int64_t bytes, void (*saved)()) {
                        save_files(folder / "model.h5", bytes,
                                   {.max_shard_size = static_cast<uint64_t>(bytes / 2)}, saved);
                      },
                      read_file, 11},
                     {"async",
                      [](const std::filesystem::path& folder, int64_t bytes, void (*saved)()) {
                        PendingSave pending;
                        for (int number = 1;; ++number) {
                          pending = save_async(
                              folder / "model.h5",
                              {.step = number, .user = as_values(generation(number, bytes))});
                          if (number > 1) continue;  // the next one waits by itself
                          pending.wait();
                          saved();
                        }
                      },
                      read_run, 2},
                     {"manager",
                      [](const std::filesystem::path& folder, int64_t bytes, void (*saved)()) {
                        CheckpointManager manager(folder, {.every_steps = 1, .keep = 2});
                        Checkpoint run;
                        manager.resume(run);
                        for (bool first = true;; first = false) {
                          run.user = as_values(generation(static_cast<int>(run.step) + 1, bytes));
                          manager.step(run);
                          if (!first) continue;
                          manager.wait();
                          saved();
                        }
                      },
                      [](const std::filesystem::path& folder) {
                        CheckpointManager manager(folder, {.keep = 2});
                        Checkpoint run;
                        if (!manager.resume(run) || !manager.skipped().empty()) return -1;
                        return generation_of(run) == run.step ? generation_of(run) : -1;
                      },
                      6}};

const Way& way_of(std::string_view name) {
  return *std::find_if(std::begin(kWays), std::end(kWays),
                       [&](const Way& way) { return name == way.name; });
}

// Runs this program again to save for ever; returns once it has saved once.
pid_t start(const Way& way, const std::filesystem::path& folder, int64_t bytes) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  const std::string size = std::to_string(bytes);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    setenv(kFolderVariable, folder.c_str(), 1);
    setenv(kKindVariable, way.name, 1);
    setenv(kBytesVariable, size.c_str(), 1);
    execl("/proc/self/exe", "kills_test", "--run_test=save_for_ever", "--log_level=nothing",
          "--report_level=no", nullptr);
    _exit(127);
  }
  close(ends[1]);
  for (char c = 0; c != '!';) BOOST_REQUIRE(read(ends[0], &c, 1) == 1);
  close(ends[0]);
  return child;
}

// Half of the states are so small that one thread writes them. Half of the others have 4 MB, which
// several write, and half 20 MB, of which another thread sends what is written to the disk.
int64_t bytes_of(int number) {
  const int64_t sizes[] = {50'000, 4 << 20, 50'000, 20 << 20};
  return sizes[number % (test::kSanitized && !test::fuzz_long() ? 2 : 4)];
}

void kill_at_any_moment(const Way& way, int in_short) {
  TempFolder folder;
  std::mt19937 random(2);
  const test::Deadline deadline;
  const int most = test::fuzz_long() ? 500 : test::kSanitized ? in_short / 3 : in_short;
  size_t most_files = 0;
  int kills = 0;
  for (; kills < most && !deadline.over(); ++kills) {
    const int64_t bytes = bytes_of(kills);
    const pid_t child = start(way, folder.path(), bytes);
    usleep(random() % (bytes > 1'000'000 ? 60'000 : 15'000));
    kill(child, SIGKILL);
    int status = 0;
    BOOST_REQUIRE(waitpid(child, &status, 0) == child);
    BOOST_REQUIRE(WIFSIGNALED(status));
    most_files = std::max(most_files, folder.count());
    BOOST_REQUIRE_MESSAGE(way.read(folder.path()) > 0, way.name << ", kill " << kills);
  }
  BOOST_TEST_MESSAGE(way.name << ": " << kills << " kills, " << most_files << " files at most");
  BOOST_TEST(kills > 0);
  BOOST_TEST(most_files <= way.most_files);
}

}  // namespace

// The child of the tests below.
BOOST_AUTO_TEST_CASE(save_for_ever,
                     *boost::unit_test::disabled() * boost::unit_test::label("alone")) {
  const char *folder = std::getenv(kFolderVariable), *kind = std::getenv(kKindVariable),
             *bytes = std::getenv(kBytesVariable);
  BOOST_REQUIRE(folder && kind && bytes);
  alarm(120);  // should the parent die
  way_of(kind).save_for_ever(folder, std::atoll(bytes), [] {
    if (write(1, "!", 1) != 1) _exit(1);
  });
}

BOOST_AUTO_TEST_CASE(a_save) { kill_at_any_moment(way_of("plain"), 80); }
BOOST_AUTO_TEST_CASE(a_sharded_save) { kill_at_any_moment(way_of("sharded"), 32); }
BOOST_AUTO_TEST_CASE(a_save_beside_the_training) { kill_at_any_moment(way_of("async"), 40); }
BOOST_AUTO_TEST_CASE(a_manager) { kill_at_any_moment(way_of("manager"), 32); }
