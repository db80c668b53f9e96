// The process that reads HDF5 files of other programs: however it ends, whatever it answers, and in
// whatever program it is started.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <tenon/core/error.h>
#include <tenon/serialization/checkpoint_reader.h>
#include <tenon/serialization/hdf5_wire.h>
#include <tenon/serialization/training_checkpoint.h>

#include "support/environment.h"
#include "weights.h"

BOOST_AUTO_TEST_SUITE(hdf5_reader_test)

using namespace tenon;
using namespace tenon::test;
namespace wire = hdf5_wire;

namespace {

// A program in place of the reader: a script of the shell.
class FakeReader {
 public:
  FakeReader(const TempFolder& folder, const std::string& script)
      : variable_("TENON_HDF5_READER", folder / "reader") {
    write_bytes(folder / "reader", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder / "reader", std::filesystem::perms::owner_all);
  }

 private:
  Environment variable_;
};

std::string refusal_with_reader(const std::string& script) {
  TempFolder folder;
  const FakeReader reader(folder, script);
  return refusal_of(weights_file("net.h5"));
}

// What a reader that says `bytes`, and nothing more, leads to.
std::string refusal_of_answer(const std::string& bytes) {
  TempFolder folder;
  write_bytes(folder / "answer", bytes);
  const FakeReader reader(folder,
                          "/bin/cat '" + (folder / "answer").string() + "' >&0; read forever");
  try {
    load(weights_file("net.h5"));
  } catch (const CheckpointError& error) {
    BOOST_TEST(has(error.what(), "net.h5': "));
    return error.what();
  }
  return "";
}

template <class T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
std::string frame(wire::FrameKind kind, const std::string& rest) {
  return bytes_of(wire::Frame{wire::kMagic, kind, rest.size()}) + rest;
}
std::string contents(uint32_t count, const std::string& entries) {
  return frame(wire::FrameKind::contents, bytes_of(wire::Contents{0, count}) + entries);
}
wire::Entry entry_of(std::string_view path, std::vector<uint64_t> dims) {
  wire::Entry entry{};
  entry.rank = static_cast<uint8_t>(dims.size());
  entry.path_bytes = static_cast<uint32_t>(path.size());
  std::copy_n(dims.begin(), std::min<size_t>(dims.size(), wire::kMaxRank), entry.dims);
  return entry;
}

bool has_no_child() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_that_ends_is_an_error) {
  BOOST_TEST(
      has(refusal_with_reader("kill -SEGV $$"), "was ended by a signal: Segmentation fault"));
  BOOST_TEST(has(refusal_with_reader("kill -KILL $$"), "was ended by a signal: Killed"));
  BOOST_TEST(has(refusal_with_reader("exit 7"), "has ended with the status 7"));
  BOOST_TEST(has_no_child());
  WeightsNet net;
  const auto before = net.head.weight.to_vector<float>();
  TempFolder folder;
  const FakeReader reader(folder, "kill -SEGV $$");
  const std::string why = error_of<CheckpointError>([&] { load(weights_file("net.h5"), net); });
  BOOST_TEST(has(why, "net.h5': the process that reads it, because Tenon did not write it, was "));
  BOOST_TEST((net.head.weight.to_vector<float>() == before));
}

BOOST_AUTO_TEST_CASE(a_process_that_hangs_is_an_error) {
  const Environment seconds("TENON_HDF5_TIMEOUT", "1");
  BOOST_TEST(has(refusal_with_reader("while :; do :; done"), "did not answer in time"));
  BOOST_TEST(has_no_child());
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_there_is_an_error) {
  const Environment reader("TENON_HDF5_READER", "/no/such/reader");
  BOOST_TEST(has(refusal_of(weights_file("net.h5")),
                 "cannot be started: '/no/such/reader': No such file or directory"));
  const Environment relative("TENON_HDF5_READER", "reader");
  BOOST_TEST(has(refusal_of(weights_file("net.h5")), "which is not an absolute path"));
  const Environment seconds("TENON_HDF5_TIMEOUT", "soon");
  BOOST_CHECK_THROW(load(weights_file("net.h5")), ValueError);
}

BOOST_AUTO_TEST_CASE(answers_that_lie_are_refused) {
  const char* nonsense = "gave an answer that makes no sense";
  BOOST_TEST(has(refusal_of_answer(std::string(100, 'x')), "not the reader of this version"));
  BOOST_TEST(has(refusal_of_answer(frame(wire::FrameKind::failure, "it is \x1b[31mred")),
                 "it is \\x1b[31mred"));
  BOOST_TEST(
      has(refusal_of_answer(frame(wire::FrameKind::failure, std::string(5000, 'x'))), nonsense));
  BOOST_TEST(has(refusal_of_answer(frame(wire::FrameKind::values, "12345678")), nonsense));
  BOOST_TEST(has(refusal_of_answer(bytes_of(
                     wire::Frame{wire::kMagic, wire::FrameKind::contents, uint64_t{1} << 60})),
                 nonsense));
  BOOST_TEST(has(refusal_of_answer(frame(wire::FrameKind::contents, "abc")), nonsense));
  BOOST_TEST(has(refusal_of_answer(contents(1, "")), nonsense));
  BOOST_TEST(has(refusal_of_answer(contents(0, "x")), nonsense));
  auto one = [&](const wire::Entry& entry) {
    return refusal_of_answer(contents(1, bytes_of(entry) + "w"));
  };
  const wire::Entry good = entry_of("w", {2});
  wire::Entry bad = good;
  bad.rank = 9;
  BOOST_TEST(has(one(bad), nonsense));
  bad = good, bad.type = static_cast<wire::Type>(8);
  BOOST_TEST(has(one(bad), nonsense));
  bad = good, bad.path_bytes = 1u << 31;
  BOOST_TEST(has(one(bad), nonsense));
  bad = good, bad.text_bytes = 2;
  BOOST_TEST(has(one(bad), nonsense));
  BOOST_TEST(has(one(entry_of("w", {uint64_t{1} << 61})), nonsense));
  BOOST_TEST(has(one(entry_of("w", {1 << 30, 1 << 30, 1 << 30})), nonsense));
  BOOST_TEST(has(one(entry_of("w", {1 << 30})), nonsense));  // more than the file can hold
  BOOST_TEST(has(refusal_of_answer(contents(2, bytes_of(good) + "w" + bytes_of(good) + "w")),
                 "both get the name 'w'"));
  const std::string listed = contents(1, bytes_of(good) + "w");
  BOOST_TEST(
      has(refusal_of_answer(listed + frame(wire::FrameKind::fault, "no")), "tensor 'w': no"));
  BOOST_TEST(
      has(refusal_of_answer(listed + frame(wire::FrameKind::values, "123456789")), nonsense));
  BOOST_TEST(has(refusal_of_answer(listed + frame(wire::FrameKind::values, "")), nonsense));
  BOOST_TEST(refusal_of_answer(listed + frame(wire::FrameKind::values, "12345678")) == "");
  wire::Entry truth = good;
  truth.type = wire::Type::boolean;
  BOOST_TEST(has(refusal_of_answer(contents(1, bytes_of(truth) + "w") +
                                   frame(wire::FrameKind::values, "\1\2")),
                 "holds bytes other than 0 and 1"));
}

// As a program may be started, and with threads that do the same.
BOOST_AUTO_TEST_CASE(any_program_may_load) {
  std::string why;
  {
    const ClosedStandardStreams closed;
    why = error_of<Error>([] {
      if (load(weights_file("net.h5")).size() == 9) throw Error("nine");
    });
  }
  BOOST_TEST(why == "nine");
  {
    // What is printed then must not reach the process.
    TempFolder folder;
    const FakeReader reader(
        folder,
        "case \"$(/bin/ls -l /proc/$PPID/fd/1 /proc/$PPID/fd/2 2>&-)\" in *socket*) exit 7;; "
        "esac; exit 5");
    const ClosedStandardStreams closed;
    why = error_of<CheckpointError>([] { load(weights_file("net.h5")); });
  }
  BOOST_TEST(has(why, "has ended with the status 5"), why);
  std::signal(SIGCHLD, SIG_IGN);
  BOOST_TEST(load(weights_file("net.h5")).size() == 9u);
  BOOST_TEST(has(refusal_with_reader("exit 7"), "has ended, and how is not known"));
  std::signal(SIGCHLD, SIG_DFL);
  std::vector<std::thread> threads;
  std::atomic<int> loaded = 0;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { loaded += load(weights_file("net_wrapped.h5")).size() == 9; });
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(loaded == 3);
}

// The process is there for whoever has the file, not for the thread that opened it.
BOOST_AUTO_TEST_CASE(a_file_that_another_thread_has_opened_is_read) {
  std::optional<CheckpointReader> file;
  std::thread([&] { file.emplace(tenon::open(weights_file("net.h5"))); }).join();
  for (const NamedShape& tensor : file->tensors())
    BOOST_TEST((file->read(tensor.key).shape() == tensor.shape));
  BOOST_TEST(file->tensors().size() == 9u);
}

BOOST_AUTO_TEST_CASE(the_process_has_no_privileges) {
  int ends[2];
  BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const int file = open(weights_file("net.h5").c_str(), O_RDONLY);  // inherited, too
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], 0);
  posix_spawn_file_actions_adddup2(&files, file, 3);
  const std::string program = build_dir() + "/lib/tenon/tenon-hdf5-reader";
  char name[] = "reader", seconds[] = "5";
  char* arguments[] = {name, seconds, nullptr};
  char* nothing[] = {nullptr};
  pid_t process = 0;
  BOOST_REQUIRE(posix_spawn(&process, program.c_str(), &files, nullptr, arguments, nothing) == 0);
  posix_spawn_file_actions_destroy(&files);
  close(ends[1]), close(file);
  wire::Frame frame{};
  BOOST_REQUIRE(recv(ends[0], &frame, sizeof frame, MSG_WAITALL) == sizeof frame);
  BOOST_TEST((frame.kind == wire::FrameKind::contents));
  const std::string folder = "/proc/" + std::to_string(process);
  const std::string status = read_bytes(folder + "/status"),
                    limits = read_bytes(folder + "/limits");
  BOOST_TEST(has(status, "\nNoNewPrivs:\t1\n"));
  if (has(read_bytes("/proc/self/status"), "\nSeccomp:"))
    BOOST_TEST(has(status, "\nSeccomp:\t2\n"));
  for (const char* zero : {"Max open files            0 ", "Max file size             0 ",
                           "Max cpu time              5 "})
    BOOST_TEST(has(limits, zero));
  BOOST_TEST(!has(limits, "Max address space         unlimited"));
  std::string contents(frame.bytes, '\0');
  BOOST_REQUIRE(recv(ends[0], contents.data(), contents.size(), MSG_WAITALL) ==
                static_cast<ssize_t>(contents.size()));
  const uint64_t absurd = 1000;  // it has nine tensors
  BOOST_TEST(send(ends[0], &absurd, sizeof absurd, MSG_NOSIGNAL) == sizeof absurd);
  int ended = 0;
  BOOST_TEST(waitpid(process, &ended, 0) == process);
  BOOST_TEST((WIFEXITED(ended) && WEXITSTATUS(ended) == 2));
  close(ends[0]);
}

// Nobody knows then whether the file is whole, so a run never goes on from an older one.
BOOST_AUTO_TEST_CASE(a_process_that_somebody_has_killed_says_nothing_of_the_file) {
  for (const char* signal : {"KILL", "TERM"}) {
    TempFolder folder;
    const FakeReader reader(folder, std::string("kill -") + signal + " $$");
    const auto opened = [&] { open(weights_file("net.h5")); };
    test::require_error<CheckpointError>(opened, "was ended by a signal",
                                         "Another process did this, or the system");
  }
  require_error<CheckpointError>(
      [] {
        TempFolder folder;
        const FakeReader reader(folder, "kill -SEGV $$");
        open(weights_file("net.h5"));
      },
      "was ended by a signal: Segmentation fault. The file is damaged, or made to do this");
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_process_alone) {
  std::optional<CheckpointReader> reader = open(weights_file("net.h5"));
  const std::string key = reader->tensors().front().key;
  const pid_t child = fork();
  if (child == 0) {
    reader.reset();
    _exit(0);
  }
  BOOST_REQUIRE(waitpid(child, nullptr, 0) == child);
  BOOST_TEST(reader->read(key).defined());
}

BOOST_AUTO_TEST_SUITE_END()
