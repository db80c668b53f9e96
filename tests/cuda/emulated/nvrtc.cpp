// NVRTC's functions that the plugin calls: its source becomes a shared object by the compiler that
// built the tests, for the emulated runtime (modules.h) in the place of machine code. The source
// has a kernel `fused_kernel` of one parameter, an `Arguments`. TENON_EMULATED_NVRTC_FAILS=1:
// nothing compiles.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace {

namespace fs = std::filesystem;

constexpr int kFailed = 6;

struct File {
  std::string name, text;
};
struct Program {
  std::vector<File> files;
  std::string log, code;
};

constexpr const char* kEntries = R"(
extern "C" {
extern const size_t tenon_argument_bytes = sizeof(Arguments);
extern const char tenon_kernel_name[] = "fused_kernel";
void tenon_run(const void* arguments) { fused_kernel(*static_cast<const Arguments*>(arguments)); }
}
)";

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Its exit status; what it says goes to the file.
int run(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> arguments;
  for (auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t child = 0;
  int status = -1;
  if (posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

int compile(Program& program, const fs::path& folder) {
  for (auto& file : program.files) {
    const fs::path path = folder / file.name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << file.text;
  }
  std::vector<std::string> command = {TENON_HOST_COMPILER,
                                      "-x",
                                      "c++",
                                      "-std=c++20",
                                      "-O0",
                                      "-fPIC",
                                      "-shared",
                                      "-nostdlib",
                                      "-nostdinc",
                                      "-nostdinc++",
                                      "-ffp-contract=off",
                                      "-include",
                                      TENON_BUILTINS,
                                      "-I",
                                      folder.string(),
                                      "-o",
                                      (folder / "kernel.so").string(),
                                      (folder / "program.cu").string()};
#if defined(__SANITIZE_ADDRESS__)
  command.push_back("-fsanitize=address");
#endif
  const int status = run(command, folder / "log");
  program.log = text_of(folder / "log");
  program.code = text_of(folder / "kernel.so");
  return status == 0 ? 0 : kFailed;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
const char* nvrtcGetErrorString(int result) {
  return result == kFailed ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
int nvrtcCreateProgram(Program** program, const char* source, const char* name, int num_headers,
                       const char* const* headers, const char* const* names) {
  *program = new Program;
  for (int i = 0; i < num_headers; ++i) (*program)->files.push_back({names[i], headers[i]});
  (*program)->files.push_back({name, std::string(source) + kEntries});
  return 0;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  return 0;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) {
  if (std::getenv("TENON_EMULATED_NVRTC_FAILS")) {
    program->log = "program.cu(1): error: " + std::string(2000, '?');
    return kFailed;
  }
  std::string folder = (fs::temp_directory_path() / "tenon-nvrtc-XXXXXX").string();
  if (!mkdtemp(folder.data())) return kFailed;
  const int result = compile(*program, folder);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return result;
}
int nvrtcGetProgramLogSize(Program* program, size_t* bytes) {
  return *bytes = program->log.size() + 1, 0;
}
int nvrtcGetProgramLog(Program* program, char* log) {
  program->log.copy(log, program->log.size());
  return log[program->log.size()] = '\0', 0;
}
int nvrtcGetCUBINSize(Program* program, size_t* bytes) { return *bytes = program->code.size(), 0; }
int nvrtcGetCUBIN(Program* program, char* code) {
  program->code.copy(code, program->code.size());
  return 0;
}

}  // extern "C"
