#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/base/uninterrupted.h>
#include <tenon/plugins/host/files.h>
#include <tenon/plugins/host/linker_check.h>

namespace tenon::plugins {

namespace {

// The linker of this very process: the interpreter that its program names.
std::string linker_path() {
  std::string path;
  auto look = [](dl_phdr_info* info, size_t, void* to) {
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_INTERP)
        *static_cast<std::string*>(to) =
            reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return 1;  // the program itself comes first
  };
  dl_iterate_phdr(look, &path);
  return path;
}

// The folder of the plugin in the linker's process: --preload splits at spaces and colons, which
// the folder's own name may have.
constexpr int kFolder = 3;
constexpr std::string_view kFolderPath = "/proc/self/fd/3/";

// Runs a program, with the folder open, and adds its output, both kinds, to `text`. Returns why it
// did not end well, or nothing.
std::string run(std::vector<std::string> command, std::vector<std::string> variables,
                const std::string& folder, std::string& text) {
  std::vector<char*> arguments, environment;
  for (auto& c : command) arguments.push_back(c.data());
  for (auto& v : variables) environment.push_back(v.data());
  arguments.push_back(nullptr), environment.push_back(nullptr);
  const int opened = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return std::strerror(errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int reason = errno;
    close(opened);
    return std::strerror(reason);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, opened, kFolder);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]), close(opened);
  char buffer[4096];
  for (ssize_t n;
       !failed && ((n = ::read(ends[0], buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR));)
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  if (failed) return std::strerror(failed);
  int status = 0;
  uninterrupted([&] { return waitpid(child, &status, 0); });
  return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "";
}

void note(std::string_view name, std::vector<std::string>& list) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.emplace_back(name);
}

// "\tlibfoo.so.1 => not found", "undefined symbol: foo\t(./libbar.so)", and of a library in
// --preload "ERROR: ld.so: object 'libfoo.so' from --preload cannot be preloaded (…): ignored."
void read_line(std::string_view line, LinkerReport& report) {
  constexpr std::string_view undefined = "undefined symbol: ", preload = "object '";
  while (!line.empty() && (line[0] == '\t' || line[0] == ' ')) line.remove_prefix(1);
  if (const size_t at = line.find(" => not found"); at != line.npos)
    return note(line.substr(0, at), report.missing);
  if (const size_t at = line.find(undefined); at != line.npos) {
    line.remove_prefix(at + undefined.size());
    return note(line.substr(0, line.find_first_of(" \t,")), report.undefined);
  }
  if (line.find(": version `") != line.npos && line.ends_with(")")) {
    if (const size_t at = line.find(" (required by"); at != line.npos) line = line.substr(0, at);
    return note(line.substr(line.find_last_of('/', line.find(": version `")) + 1), report.versions);
  }
  if (const size_t at = line.find(preload);
      at != line.npos && line.find("from --preload cannot be preloaded") != line.npos) {
    line.remove_prefix(at + preload.size());
    line = line.substr(0, line.find('\''));
    if (line.starts_with(kFolderPath)) line.remove_prefix(kFolderPath.size());
    note(line, report.missing);
  }
}

}  // namespace

LinkerReport ask_linker(const std::string& library, const std::vector<std::string>& more) {
  LinkerReport report;
  const std::string linker = linker_path();
  if (linker.empty()) {
    report.why = "this program has no dynamic linker";
    return report;
  }
  std::string names;
  const std::string folder = parent_folder(library);
  for (auto& name : more) {
    if (!names.empty()) names += ":";
    const bool beside = parent_folder(name) == folder;
    names += beside ? std::string(kFolderPath) + name.substr(name.rfind('/') + 1) : name;
  }
  std::vector<std::string> command{linker};
  if (!names.empty()) command.insert(command.end(), {"--preload", names});
  command.push_back(library);
  // The linker lists the libraries instead of starting anything, and with LD_WARN also the symbols
  // that none of them defines. The option --list would stop at the first library that is missing.
  std::vector<std::string> variables{"LD_TRACE_LOADED_OBJECTS=1", "LD_WARN=yes", "LD_BIND_NOW=yes",
                                     "LC_ALL=C"};
  // Libraries are searched as in this process.
  if (const char* path = secure_getenv("LD_LIBRARY_PATH"))
    variables.push_back(std::string("LD_LIBRARY_PATH=") + path);
  std::string text;
  if (const std::string why = run(command, variables, folder, text); !why.empty()) {
    report.why = fmt::format("{}: {}", linker, why);
    return report;
  }
  report.asked = true;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    read_line(rest.substr(0, end), report);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return report;
}

}  // namespace tenon::plugins
