// Every system call of a save, of a load and of reading a data file fails once, in several ways:
// each time the operation ends well, or in an error that names the file and the reason, and leaves
// everything as it was. TENON_FUZZ=long walks larger files and more ways.
#include <algorithm>
#include <functional>
#include <set>
#include <system_error>

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/core/autograd/autograd.h>
#include <tenon/core/tensor.h>
#include <tenon/data/idx.h>
#include <tenon/modules/linear.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/checkpoint_manager.h>

#include "data/packed.h"
#include "files.h"
#include "fuzz.h"
#include "serialization/failing_calls.h"
#include "serialization/weights.h"
#include "support/sanitized.h"

using namespace tenon;

namespace {

const bool is_long = test::fuzz_long();
// Under sanitizers a long walk takes every fifth call.
const int one_in_some = test::kSanitized && !is_long ? 5 : 1;

std::vector<Fault> faults() {
  std::vector<Fault> all{{Fault::is_short}, {Fault::ends}};
  std::vector<int> errors{EIO, EINTR, ENOSPC, EAGAIN};
  if (is_long)
    errors.insert(errors.end(), {EACCES, EBADF, EDQUOT, EFBIG, EINVAL, EMFILE, ENFILE, ENOLCK,
                                 ENOMEM, EPERM, EROFS, ESTALE});
  for (int error : errors) {
    all.push_back({Fault::fails, error});
    if (error != EINTR)
      all.push_back({Fault::fails, error, true});  // a call that is always interrupted never ends
  }
  return all;
}

size_t open_files() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                           std::filesystem::directory_iterator()));
}

// Runs `operation` again and again, each time with the next call going wrong, until none is left.
// `check` gets the text of the error, empty where there was none.
void walk(const Fault& fault, const std::string& path, const test::Deadline& deadline,
          std::set<std::string>& hit, const std::function<void()>& operation,
          const std::function<void(const std::string&)>& check, int stride = 1) {
  for (int at = 1; at < 10'000; at += stride) {
    if (deadline.over()) return;
    const size_t files = open_files();
    std::string text;
    injector = {.armed = true, .at = at, .fault = fault};
    try {
      operation();
    } catch (const Error& error) {
      text = error.what();
    } catch (const std::exception& error) {
      text = std::string("not an error of Tenon's: ") + error.what();
    }
    injector.armed = false;
    const std::string call = injector.hit;
    BOOST_TEST_CONTEXT(call << ", call " << at << ": " << fault.str()) {
      BOOST_TEST(open_files() == files);
      if (!text.empty()) {
        BOOST_TEST((has(text, "'" + path + "'") || has(text, "'" + path + "/")), text);
        if (fault.kind == Fault::fails)
          BOOST_TEST(has(text, std::system_category().message(fault.error)), text);
        BOOST_TEST(!call.empty(), text);
        BOOST_TEST(fault.kind != Fault::is_short, text);  // the rest is asked for
        BOOST_TEST((fault.kind != Fault::fails || fault.error != EINTR ||
                    (call != "open" && call != "pread" && call != "pwrite" && call != "fsync" &&
                     call != "poll" && call != "recv" && call != "send")),
                   text);
      }
      check(text);
    }
    if (injector.count < at) return;
    if (!call.empty()) hit.insert(call);
  }
  BOOST_FAIL("the operation never ends");
}

bool has_own_leftover(const TempFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (has(entry.path().filename().native(), ".tmp." + std::to_string(getpid()) + "."))
      return true;
  return false;
}

nn::StateDict generation(int number) {
  return {{"weight", full({is_long ? 300 : 30, 1000}, number)},
          {"bias", full({7}, number)},
          {"one", full({}, number)}};
}
int generation_of(const std::filesystem::path& path) {
  const nn::StateDict dict = load(path);
  const int first = dict.at("one").item<int>();
  for (const auto& [key, tensor] : dict)
    for (int value : tensor.to_vector<int>())
      if (value != first) return -1;
  return first;
}

pid_t dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  BOOST_REQUIRE(waitpid(child, nullptr, 0) == child);
  return child;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_save_whose_system_calls_fail_leaves_the_old_file_or_the_new_one) {
  const test::Deadline deadline;
  TempFolder folder;
  const std::filesystem::path path = folder / "model.h5";
  const std::string leftover = ".model.h5.tmp." + std::to_string(dead_process()) + ".1";
  std::set<std::string> hit;
  int old_number = 1;
  save(path, generation(1));
  for (const Fault& fault : faults())
    walk(
        fault, path, deadline, hit,
        [&] {
          write_bytes(folder / leftover, "");
          save(path, generation(old_number + 1));
        },
        [&](const std::string& text) {
          const int found = generation_of(path);
          if (text.empty() || has(text, "is written, but its folder could not be synced"))
            BOOST_TEST(found == old_number + 1);
          else
            BOOST_TEST(found == old_number);
          old_number = found;
          BOOST_TEST(!has_own_leftover(folder));
          save(path, generation(++old_number));  // and life goes on
          BOOST_TEST(folder.count() == 1u);
        });
  for (const char* call : {"open", "close", "pread", "pwrite", "fsync", "rename", "fstat", "stat",
                           "flock", "fchmod", "unlink", "opendir"})
    BOOST_TEST((hit.contains(call) || deadline.over()), call << " was never called");
}

BOOST_AUTO_TEST_CASE(a_sharded_save_whose_system_calls_fail_leaves_the_old_files_or_the_new_ones) {
  const test::Deadline deadline;
  TempFolder folder;
  const std::filesystem::path path = folder / "model.h5";
  const SaveOptions options{.max_shard_size = 1000};
  std::set<std::string> hit;
  int old_number = 1;
  save(path, generation(1), options);
  for (const Fault& fault : {Fault{Fault::fails, EIO}, Fault{Fault::fails, ENOSPC, true}})
    walk(
        fault, path, deadline, hit, [&] { save(path, generation(old_number + 1), options); },
        [&](const std::string& text) {
          const int found = generation_of(path);
          BOOST_TEST((found == old_number + 1 || (!text.empty() && found == old_number)));
          old_number = found;
          BOOST_TEST(!has_own_leftover(folder));
          save(path, generation(++old_number), options);
          BOOST_TEST(folder.count() == 3u);
        },
        one_in_some);
}

// The thread that writes tells the one that waits.
BOOST_AUTO_TEST_CASE(an_async_save_whose_system_calls_fail_leaves_the_old_file_or_the_new_one) {
  const test::Deadline deadline;
  TempFolder folder;
  const std::filesystem::path path = folder / "run.h5";
  nn::Linear model(20, 10), loaded(20, 10);
  Checkpoint run{.model = model};
  const auto save_next = [&] {
    ++run.step;
    no_grad([&] { model.weight.fill_(static_cast<double>(run.step)); });
    save_async(path, run).wait();
  };
  save_next();
  int64_t newest = 1;
  std::set<std::string> hit;
  for (const Fault& fault : {Fault{Fault::fails, EIO}, Fault{Fault::fails, ENOSPC, true},
                             Fault{Fault::fails, EINTR}, Fault{Fault::is_short}})
    walk(
        fault, path, deadline, hit,
        [&] {
          run.step = newest;
          const Lending calls_of_the_thread;
          save_next();
        },
        [&](const std::string& text) {
          Checkpoint found{.model = loaded};
          load(path, found);
          BOOST_TEST((found.step == newest + 1 || (!text.empty() && found.step == newest)), text);
          BOOST_TEST(loaded.weight.to_vector<float>().at(0) == static_cast<float>(found.step));
          BOOST_TEST(!has_own_leftover(folder));
          run.step = found.step;
          save_next();  // and life goes on
          newest = run.step;
          BOOST_TEST(folder.count() == 1u);
        });
  for (const char* call : {"open", "pwrite", "fsync", "rename"})
    BOOST_TEST((hit.contains(call) || deadline.over()), call << " was never called");
}

BOOST_AUTO_TEST_CASE(a_load_whose_system_calls_fail_leaves_the_model) {
  const test::Deadline deadline;
  TempFolder folder;
  const std::filesystem::path path = folder / "model.h5";
  nn::Linear saved(is_long ? 3000 : 300, 100), model(is_long ? 3000 : 300, 100);
  auto fill = [](nn::Linear& layer, double value) {
    NoGrad guard;
    layer.weight.fill_(value);
    layer.bias.fill_(value);
  };
  auto all_are = [](const nn::Linear& layer, float value) {
    const std::vector<float> weight = layer.weight.to_vector<float>(),
                             bias = layer.bias.to_vector<float>();
    auto is = [&](float found) { return found == value; };
    return std::all_of(weight.begin(), weight.end(), is) &&
           std::all_of(bias.begin(), bias.end(), is);
  };
  fill(saved, 1);
  save(path, saved);
  std::set<std::string> hit;
  for (const Fault& fault : faults()) {
    fill(model, 2);
    walk(
        fault, path, deadline, hit, [&] { load(path, model); },
        [&](const std::string& text) {
          BOOST_TEST(all_are(model, text.empty() ? 1 : 2));
          fill(model, 2);
        });
  }
  fill(model, 2);
  walk(
      {Fault::fails, EIO}, path, deadline, hit, [&] { load(path, model, {.low_memory = true}); },
      [&](const std::string& text) {
        if (!has(text, "part of the model may have been changed"))
          BOOST_TEST(all_are(model, text.empty() ? 1 : 2));
        fill(model, 2);
      });
  load(path, model);
  BOOST_TEST(all_are(model, 1));
  for (const char* call : {"open", "close", "pread", "fstat"})
    BOOST_TEST((hit.contains(call) || deadline.over()), call << " was never called");
}

// Steps are not lost because a file that is whole could not be read for a moment.
BOOST_AUTO_TEST_CASE(a_manager_whose_system_calls_fail_goes_back_no_step) {
  const test::Deadline deadline;
  TempFolder folder;
  nn::Linear model(20, 10);
  Checkpoint run{.model = model};
  for (uint64_t shard : {0, 500}) {
    if (test::kSanitized && shard == 0) continue;  // half a minute each
    const CheckpointManagerOptions options{.keep = 2, .async = false, .max_shard_size = shard};
    const std::filesystem::path path = folder / std::to_string(shard);
    const auto save_next = [&](CheckpointManager& manager) {
      ++run.step;
      no_grad([&] { model.weight.fill_(static_cast<double>(run.step)); });
      manager.save(run, -static_cast<double>(run.step));
    };
    const auto is_at = [&](int64_t step) {
      return run.step == step && model.weight.to_vector<float>().at(0) == static_cast<float>(step);
    };
    run.step = 0;
    {
      CheckpointManager manager(path, options);
      for (int i = 0; i < 3; ++i) save_next(manager);
    }
    int64_t newest = 3;
    std::set<std::string> hit;
    for (const Fault& fault : {Fault{Fault::fails, EIO}, Fault{Fault::fails, EMFILE},
                               Fault{Fault::fails, EACCES, true}}) {
      if (test::kSanitized && fault.error == EMFILE) continue;
      CheckpointManager manager(path, options);
      walk(
          fault, path, deadline, hit,
          [&] {
            run.step = 0;
            manager.resume(run);
          },
          [&](const std::string& text) {
            BOOST_TEST((text.empty() ? is_at(newest) : run.step == 0));
            BOOST_TEST(manager.skipped().empty());
          });
    }
    for (const char* call : {"open", "pread", "fstat", "stat", "opendir", "readdir", "readlink"})
      BOOST_TEST((hit.contains(call) || deadline.over()), call << " was never called");
    // A save that fails has been written or not; the next is, and what is best is known.
    walk(
        {Fault::fails, EIO}, path, deadline, hit,
        [&] {
          CheckpointManager manager(path, options);
          manager.resume(run);
          save_next(manager);
        },
        [&](const std::string& text) {
          CheckpointManager manager(path, options);
          BOOST_TEST(manager.resume(run).has_value());
          BOOST_TEST((is_at(newest + 1) || (!text.empty() && is_at(newest))), text);
          save_next(manager);
          newest = run.step;
          load(manager.best().value(), run);
          BOOST_TEST(is_at(newest));
          size_t names = 0;
          for (const auto& entry : std::filesystem::directory_iterator(path))
            names += !has(entry.path().filename().native(), ".tmp.");
          BOOST_TEST(names == (shard ? 8u : 4u));
        },
        one_in_some);
  }
}

// Here the process that reads the file is at the other end.
BOOST_AUTO_TEST_CASE(a_load_of_an_hdf5_file_whose_system_calls_fail_leaves_the_model) {
  const test::Deadline deadline;
  const std::filesystem::path path = test::weights_file("net.h5");
  test::WeightsNet model;
  const std::vector<float> untouched(12);
  std::set<std::string> hit;
  for (const Fault& fault :
       {Fault{Fault::is_short}, Fault{Fault::fails, EINTR}, Fault{Fault::fails, EIO}})
    walk(
        fault, path, deadline, hit,
        [&] {
          no_grad([&] { model.body.fc1.weight.fill_(0); });
          load(path, model);
        },
        [&](const std::string& text) {
          if (text.empty())
            test::require_numbered(model);
          else
            BOOST_TEST((model.body.fc1.weight.to_vector<float>() == untouched));
        });
  for (const char* call : {"open", "pread", "fcntl", "socketpair", "poll", "recv", "send"})
    BOOST_TEST((hit.contains(call) || deadline.over()), call << " was never called");
}

BOOST_AUTO_TEST_CASE(a_data_file_whose_system_calls_fail_is_named) {
  const test::Deadline deadline;
  TempFolder folder;
  const std::string values(is_long ? 1 << 20 : 1000, '\x07');
  const std::string bytes = idx_header(8, {static_cast<uint32_t>(values.size())}) + values;
  for (bool packed : {false, true}) {
    const std::filesystem::path path = folder / (packed ? "file.gz" : "file");
    write_bytes(path, packed ? gzip(bytes) : bytes);
    std::set<std::string> hit;
    for (const Fault& fault : faults()) {
      Tensor read;
      walk(
          fault, path, deadline, hit, [&] { read = data::read_idx(path); },
          [&](const std::string& text) {
            if (text.empty())
              BOOST_TEST((read.to_vector<uint8_t>() == std::vector<uint8_t>(values.size(), 7)));
          });
    }
    for (const char* call : {"open", "close", "pread", "fstat"})
      BOOST_TEST((hit.contains(call) || deadline.over()), call << " was never called");
  }
}

// What other threads print would go into the checkpoint.
BOOST_AUTO_TEST_CASE(a_save_takes_no_number_of_a_standard_stream) {
  TempFolder folder;
  const std::filesystem::path path = folder / "model.h5";
  std::string text;
  bool free_again = true;
  injector = {};
  {
    ClosedStandardStreams closed;
    text = error_of<Error>([&] { save(path, generation(1)); });
    for (int i = 0; i < 3; ++i) free_again &= fcntl(i, F_GETFD) == -1;
  }
  const int lowest = injector.lowest_written;
  BOOST_TEST(text == "");
  BOOST_TEST(lowest > 2);
  BOOST_TEST(lowest < INT_MAX);
  BOOST_TEST(free_again);
  BOOST_TEST(generation_of(path) == 1);
}
