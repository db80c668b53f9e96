#include <cerrno>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/base/uninterrupted.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/data/fetch.h>
#include <tenon/data/md5.h>

extern char** environ;

namespace tenon::data {
namespace {

// The exit status of a program, and what it wrote to its error output.
struct Outcome {
  int status;
  std::string errors;
};
// Runs a program without a shell.
Outcome run(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw DataError(fmt::format("cannot make a pipe: {}", std::system_category().message(errno)));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // This comes first, because the pipe has the number of a standard stream if one of them is
  // closed.
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Outcome outcome{error ? 127 : 0, error ? std::system_category().message(error) : ""};
  char chunk[512];
  for (ssize_t n; !error && (n = read(ends[0], chunk, sizeof chunk)) != 0;) {
    if (n < 0 && errno != EINTR) break;
    if (n > 0 && outcome.errors.size() < 4096) outcome.errors.append(chunk, static_cast<size_t>(n));
  }
  close(ends[0]);
  if (error) return outcome;
  int status = 0;
  uninterrupted([&] { return waitpid(child, &status, 0); });
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (!outcome.errors.empty() && outcome.errors.back() == '\n') outcome.errors.pop_back();
  return outcome;
}

// A temporary file next to the target, which is removed unless it was renamed.
class Partial {
 public:
  explicit Partial(const std::filesystem::path& target)
      : path_(fmt::format("{}.part.{}", target.string(), getpid())) {}
  ~Partial() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void fetch_one(const RemoteFile& file, const std::filesystem::path& target) {
  const std::string url(file.url);
  Partial partial(target);
  const Outcome curl = run({"curl", "--fail", "--location", "--silent", "--show-error",
                            "--connect-timeout", "5", "--retry", "1", "--speed-limit", "1000",
                            "--speed-time", "20", "--output", partial.path().string(), url});
  if (curl.status == 127)
    throw DataError(fmt::format(
        "cannot fetch '{}': the program curl cannot be run ({}); install it", url, curl.errors));
  if (curl.status != 0)
    throw DataError(fmt::format("cannot fetch '{}': curl ended with status {}: {}", url,
                                curl.status, curl.errors));
  if (const std::string found = md5_of_file(partial.path()); found != file.md5)
    throw DataError(fmt::format("'{}' is not what it should be: its MD5 is {}, expected {}", url,
                                found, file.md5));
  std::filesystem::rename(partial.path(), target);
}

}  // namespace

void fetch(std::span<const RemoteFile> files, const std::filesystem::path& folder,
           const std::function<void(const std::string&)>& report) {
  try {
    std::filesystem::create_directories(folder);
    for (const RemoteFile& file : files) {
      const auto target = folder / file.name;
      const bool there = std::filesystem::exists(target);
      if (there && md5_of_file(target) != file.md5)
        throw DataError(
            fmt::format("'{}' is there, but it is not the file that '{}' names (its MD5 differs); "
                        "remove it, or choose another folder",
                        printable(target.native()), file.url));
      if (!there) fetch_one(file, target);
      if (report) report(printable(target.native()) + (there ? ": there already" : ": fetched"));
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw DataError(fmt::format("cannot fetch data into '{}': {}", printable(folder.native()),
                                printable(error.what())));
  }
}

}  // namespace tenon::data
