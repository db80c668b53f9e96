// DataParallel over devices of the cuda plugin: joined by NCCL where it can, through copies where
// it cannot. On the emulated devices NCCL is a stand-in that counts; on real ones the same sums
// have to come out.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <dlfcn.h>
#include <sys/wait.h>

#include <tenon/core/dispatch/replica.h>

#include "cuda/bare.h"
#include "cuda/emulated.h"
#include "cuda/emulated/nccl_counters.h"
#include "parallel/trained.h"
#include "training/step.h"

using namespace tenon;
using namespace tenon::test;

namespace {

bool on_real_gpus() { return std::getenv("TENON_TEST_GPU") != nullptr; }

struct ThreeDevices : EmulatedCuda {
  ThreeDevices() {
    setenv("TENON_EMULATED_DEVICES", "3", 1);
    // cuBLASLt's stand-in is in the first folder.
    if (const char* other = std::getenv("TENON_TEST_NCCL_FOLDER"))
      setenv("TENON_CUDA_LIBRARY_PATH", (build_dir() + "/tests/cuda:" + other).c_str(), 1);
  }
};

// For cases that need several devices.
auto devices(uint32_t least) {
  return boost::unit_test::precondition([least](boost::unit_test::test_unit_id) {
    boost::test_tools::assertion_result result(device_count("cuda") >= least);
    if (!result) result.message() << "there are fewer than " << least << " devices";
    return result;
  });
}
boost::test_tools::assertion_result with_stand_in(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result result(!on_real_gpus());
  if (!result) result.message() << "needs the stand-in for NCCL";
  return result;
}

// Where NCCL is the stand-in: what it has done since.
class Since {
 public:
  Since() : before_(now()) {}
  uint64_t joins() const { return now().joins - before_.joins; }
  uint64_t launches() const { return now().launches - before_.launches; }
  uint64_t calls() const { return now().calls - before_.calls; }

 private:
  static emulated::NcclCounters now() {
    void* library =
        dlopen((build_dir() + "/tests/cuda/nccl/libnccl.so.2").c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return {};  // nobody has asked for it yet
    auto* counters =
        static_cast<emulated::NcclCounters*>(dlsym(library, "tenon_emulated_nccl_counters"));
    BOOST_REQUIRE(counters);
    const auto values = *counters;
    dlclose(library);
    return values;
  }
  emulated::NcclCounters before_;
};

nn::Sequential plain_mlp() {
  manual_seed(7);
  return nn::Sequential(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 3));
}

// This program again, one case of it, with `settings` before; what it wrote.
std::string output_of(const std::string& settings, const std::string& test) {
  TempFolder folder;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string(),
                    out = (folder / "out").string();
  const int status = std::system(
      (settings + " '" + self + "' --run_test=" + test + " >'" + out + "' 2>&1").c_str());
  const std::string text = read_bytes(out);
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0), text);
  return text;
}
size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace
BOOST_TEST_GLOBAL_FIXTURE(ThreeDevices);

BOOST_AUTO_TEST_CASE(a_step_over_two_devices_is_one_sum_and_one_broadcast, *devices(2)) {
  nn::DataParallel model(mlp(1), {"cuda:0", "cuda:1"});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Tensor x = ones({6, 8}, {.device = "cuda:0"});
  auto step = [&] {
    optimizer.zero_grad();
    model(x).square().sum().backward();
    optimizer.step();
  };
  step();
  Since since;
  for (int i = 0; i < 3; ++i) step();
  synchronize("cuda:1");
  if (on_real_gpus()) return;
  BOOST_TEST(since.joins() == 0u);
  BOOST_TEST(since.launches() == 6u);
  BOOST_TEST(since.calls() ==
             3u * (6 + 9));  // six parameters are summed; with three buffers they are broadcast
}

BOOST_AUTO_TEST_CASE(steps_are_those_of_one_device, *devices(2)) {
  const auto one = trained(plain_mlp(), "cuda:0", 8);
  Since since;
  BOOST_TEST(largest_difference(
                 trained(nn::DataParallel(plain_mlp(), {"cuda:0", "cuda:1"}), "cuda:0", 8), one) <
             1e-5);
  BOOST_TEST(largest_difference(
                 trained(nn::DataParallel(plain_mlp(), {"cuda:1", "cuda:0"}), "cuda:1", 8), one) <
             1e-5);
  if (!on_real_gpus()) BOOST_TEST(since.launches() == 2u * 16);
}

BOOST_AUTO_TEST_CASE(steps_over_three_devices, *devices(3)) {
  const auto one = trained(plain_mlp(), "cuda:0", 8);
  Since since;
  BOOST_TEST(
      largest_difference(
          trained(nn::DataParallel(plain_mlp(), {"cuda:0", "cuda:1", "cuda:2"}), "cuda:0", 8),
          one) < 1e-5);
  if (!on_real_gpus()) BOOST_TEST(since.launches() == 16u);
}

BOOST_AUTO_TEST_CASE(a_convolutional_step, *devices(2)) {
  const int64_t side = device_is_slow() ? 12 : 28;
  Training one("cuda:0", false, side), two("cuda:0", false, side);
  nn::DataParallel model(two.model, {"cuda:0", "cuda:1"});
  for (int64_t i = 0; i < 2; ++i) {
    one.next_batch(i);
    one.step();
    two.next_batch(i);
    two.optimizer->zero_grad();
    two.loss = cross_entropy(model(two.x), two.y);
    two.loss.backward();
    two.optimizer->step();
    BOOST_TEST(std::abs(one.loss.item() - two.loss.item()) < 1e-5);
  }
  BOOST_TEST(largest_difference(one.values(), two.values()) < 1e-4);
}

BOOST_AUTO_TEST_CASE(the_same_bits_twice, *devices(2)) {
  auto run = [] { return trained(nn::DataParallel(mlp(2), {"cuda:0", "cuda:1"}), "cuda:0", 5); };
  const auto first = run();
  for (int i = 0; i < 2; ++i) BOOST_TEST((run() == first));
  // Batch normalization sees half a batch on each device, so the reference is two devices of the
  // cpu.
  BOOST_TEST(largest_difference(
                 first, trained(nn::DataParallel(mlp(2), {"cpu:0", "cpu:1"}), "cpu:0", 5)) < 1e-3);
}

BOOST_AUTO_TEST_CASE(a_device_given_twice_is_refused_by_name) {
  const auto text = error_of<DeviceError>([] {
    nn::DataParallel(plain_mlp(), {"cuda:0", "cuda:0"});
  });
  BOOST_TEST(has(text, "cuda:0 is given twice"), text);
}

BOOST_AUTO_TEST_CASE(a_device_with_the_cpu_goes_through_copies) {
  const auto one = trained(plain_mlp(), "cuda:0", 5);
  Since since;
  BOOST_TEST(largest_difference(
                 trained(nn::DataParallel(plain_mlp(), {"cuda:0", "cpu:0"}), "cuda:0", 5), one) <
             1e-5);
  BOOST_TEST(largest_difference(
                 trained(nn::DataParallel(plain_mlp(), {"cpu:0", "cuda:0"}), "cpu:0", 5), one) <
             1e-5);
  BOOST_TEST(since.launches() == 0u);
}

BOOST_AUTO_TEST_CASE(the_odd_one_of_a_mixed_set_goes_through_copies, *devices(2)) {
  const auto one = trained(plain_mlp(), "cuda:0", 5);
  Since since;
  BOOST_TEST(largest_difference(
                 trained(nn::DataParallel(plain_mlp(), {"cuda:0", "cpu:0", "cuda:1"}), "cuda:0", 5),
                 one) < 1e-5);
  if (!on_real_gpus()) BOOST_TEST(since.launches() == 10u);
}

// A leaf that is used on two devices, in every type that has gradients.
BOOST_AUTO_TEST_CASE(sums_in_every_floating_type, *devices(2)) {
  for (DType dtype : {f32, f64, f16, bf16})
    for (int64_t n : {1, 3, 1000}) {
      Since since;
      Tensor w = full({n}, 2, {.dtype = dtype, .device = "cuda:0"});
      w.requires_grad_();
      allow_replicas(w);
      Tensor one = full({n}, 1, {.dtype = dtype, .device = "cuda:0"}),
             ten = full({n}, 10, {.dtype = dtype, .device = "cuda:1"});
      Tensor y = w * one + (w * ten).to("cuda:0");
      y.backward(one);
      BOOST_TEST(w.grad().to_vector<double>() == std::vector<double>(static_cast<size_t>(n), 11.0),
                 boost::test_tools::per_element());
      BOOST_TEST(w.grad().device().str() == "cuda:0");
      if (!on_real_gpus()) BOOST_TEST(since.launches() >= 1u);
    }
}

BOOST_AUTO_TEST_CASE(a_device_that_captures_takes_part_in_nothing, *devices(2)) {
  nn::DataParallel model(nn::Linear(8, 3), {"cuda:0", "cuda:1"});
  Tensor x = ones({6, 8}, {.device = "cuda:0"});
  model(x).sum().backward();
  const auto text = error_of<DeviceError>(
      [&] { StreamGraph::capture("cuda:0", [&] { model(x).sum().backward(); }); });
  BOOST_TEST(has(text, "while a stream graph of cuda:0 is captured"), text);
  BOOST_TEST(model(x).size(0) == 6);
  model(x).sum().item();
}

// ---- failures ----

BOOST_AUTO_TEST_CASE(a_collective_that_fails_names_its_devices,
                     *boost::unit_test::precondition(with_stand_in)) {
  synchronize();
  nn::DataParallel model(plain_mlp(), {"cuda:0", "cuda:1"});
  Tensor x = ones({6, 8}, {.device = "cuda:0"});
  auto backward = [&] {
    for (auto& p : model.parameters()) p.set_grad(Tensor());
    model(x).square().sum().backward();
    return model.parameters()[0].grad();
  };
  const auto sound = backward().to_vector<float>();
  Tensor loss = model(x).square().sum();
  setenv("TENON_EMULATED_NCCL_FAIL", "call", 1);
  for (auto& p : model.parameters()) p.set_grad(Tensor());
  loss.backward();
  unsetenv("TENON_EMULATED_NCCL_FAIL");
  const auto text = error_of<Error>([&] { model.parameters()[0].grad().to_vector<float>(); });
  BOOST_TEST(has(text, "all_reduce over cuda:0, cuda:1"), text);
  BOOST_TEST(has(text, "ncclAllReduce"), text);
  BOOST_TEST(has(text, "a system call failed"), text);
  BOOST_CHECK_NO_THROW(synchronize());  // told already
  BOOST_TEST((backward().to_vector<float>() == sound));
}

// What every later call would say, too: in a process of its own, as the communicator is lost for
// good.
BOOST_AUTO_TEST_CASE(a_peer_that_fails_in_a_process_of_its_own,
                     *boost::unit_test::precondition(with_stand_in)) {
  const auto text = output_of("", "a_peer_has_failed");
  BOOST_TEST(has(text, "No errors detected"), text);
}
BOOST_AUTO_TEST_CASE(a_peer_has_failed, *boost::unit_test::disabled()) {
  nn::DataParallel model(plain_mlp(), {"cuda:0", "cuda:1"});
  Tensor x = ones({6, 8}, {.device = "cuda:0"});
  Tensor loss = model(x).square().sum();
  loss.item();
  setenv("TENON_EMULATED_NCCL_FAIL", "later", 1);
  loss.backward();
  const auto text = error_of<Error>([&] { model.parameters()[0].grad().to_vector<float>(); });
  BOOST_TEST(has(text, "all_reduce over cuda:0, cuda:1"), text);
  BOOST_TEST(has(text, "a collective on device 0: a peer has failed"), text);
  synchronize();
  BOOST_TEST((x * 2.0).sum().item() == 96.0);  // the devices themselves work on
  // At exit the communicator is given up: waiting for its end would be for ever.
}

BOOST_AUTO_TEST_CASE(without_nccl_in_a_process_of_its_own,
                     *boost::unit_test::precondition(with_stand_in)) {
  const auto text = output_of("TENON_LOG=info TENON_TEST_NCCL_FOLDER=", "there_is_no_nccl");
  BOOST_TEST(count_of(text, "are not joined") == 1u, text);
  BOOST_TEST(has(text, "cuda:0, cuda:1 are not joined (NCCL cannot be used"), text);
  BOOST_TEST(has(text, "name its folder in TENON_CUDA_LIBRARY_PATH"), text);
  BOOST_TEST(has(text, "sums and broadcasts use copies"), text);
  // With it nothing of the kind is said.
  BOOST_TEST(
      !has(output_of("TENON_LOG=info", "a_step_over_two_devices_is_one_sum_and_one_broadcast"),
           "are not joined"));
}
BOOST_AUTO_TEST_CASE(with_an_nccl_that_throws_in_a_process_of_its_own,
                     *boost::unit_test::precondition(with_stand_in)) {
  const TempFolder folder;
  std::filesystem::copy_file(build_dir() + "/tests/plugins/fixtures/joint.so",
                             folder / "libnccl.so.2");
  const auto text =
      output_of("TENON_LOG=info TENON_TEST_FAULT=load_throws TENON_TEST_NCCL_FOLDER=" +
                    std::string(folder.path()),
                "there_is_no_nccl");
  BOOST_TEST(has(text, "libnccl.so.2: let an exception out while it was loaded: a thrown text"),
             text);
  BOOST_TEST(has(text, "sums and broadcasts use copies"), text);
}
BOOST_AUTO_TEST_CASE(there_is_no_nccl, *boost::unit_test::disabled()) {
  const auto one = trained(plain_mlp(), "cuda:0", 5);
  for (int i = 0; i < 2; ++i)
    BOOST_TEST(largest_difference(
                   trained(nn::DataParallel(plain_mlp(), {"cuda:0", "cuda:1"}), "cuda:0", 5), one) <
               1e-5);
}

// ---- the extension's own rules, which the core keeps to ----

namespace {

// Two devices, joined without the core.
struct Joined {
  Bare first{"cuda", 0}, second{"cuda", 1};
  const tn_collectives& api = *first.backend.extension<tn_collectives>(TN_EXT_COLLECTIVES, 1);
  tn_communicator* communicator = nullptr;
  int32_t* memory[2] = {first.allocate<int32_t>(16), second.allocate<int32_t>(16)};
  void* members[2] = {memory[0], memory[1]};
  tn_stream* streams[2] = {first.stream, second.stream};

  Joined() { ok(join({first.device, second.device}, &communicator)); }
  ~Joined() { api.communicator_destroy(communicator); }
  tn_error* join(const std::vector<tn_device*>& devices, tn_communicator** joined) {
    return api.communicator_create(first.api.backend, devices.data(), devices.size(), joined);
  }

  void put(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    first.write(memory[0], a);
    second.write(memory[1], b);
  }
  void check(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
    BOOST_TEST(first.get(memory[0], a.size()) == a, boost::test_tools::per_element());
    BOOST_TEST(second.get(memory[1], b.size()) == b, boost::test_tools::per_element());
  }
  tn_error* reduce(tn_dtype dtype, tn_reduce_op op, uint64_t n = 3) {
    return api.all_reduce(communicator, members, members, n, dtype, op, streams);
  }
  tn_error* broadcast(uint32_t root, uint64_t n = 3, size_t offset = 0) {
    void* there[2] = {memory[0] + offset, memory[1] + offset};  // needs to live for the call only
    return api.broadcast(communicator, there, n, TN_I32, root, streams);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_reduction_and_a_broadcast_from_any_member, *devices(2)) {
  Joined j;
  using Values = std::vector<int32_t>;
  for (auto& [op, expected] : std::map<tn_reduce_op, Values>{{TN_REDUCE_SUM, {11, -1, 5}},
                                                             {TN_REDUCE_MAX, {10, 4, 3}},
                                                             {TN_REDUCE_MIN, {1, -5, 2}}}) {
    j.put({1, -5, 3}, {10, 4, 2});
    ok(j.reduce(TN_I32, op));
    j.check(expected, expected);
  }
  for (uint32_t root : {0u, 1u}) {
    j.put({0, 0, 0}, {1, 1, 1});
    ok(j.broadcast(root));
    const Values expected(3, static_cast<int32_t>(root));
    j.check(expected, expected);
  }
}

BOOST_AUTO_TEST_CASE(a_group_is_launched_at_its_end, *devices(2)) {
  Joined j;
  j.put({1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60});
  Since since;
  ok(j.api.group_begin(j.communicator));
  ok(j.reduce(TN_I32, TN_REDUCE_SUM, 2));
  ok(j.broadcast(1, 2, 4));
  ok(j.api.group_end(j.communicator));
  j.check({11, 22, 3, 4, 50, 60}, {11, 22, 30, 40, 50, 60});
  if (!on_real_gpus()) BOOST_TEST((since.launches() == 1u && since.calls() == 2u));
}

BOOST_AUTO_TEST_CASE(what_the_extension_refuses, *devices(2)) {
  Joined j;
  tn_communicator* none = nullptr;
  refused(j.join({j.second.device, j.first.device, j.second.device}, &none), TN_CODE_UNSUPPORTED,
          "NCCL cannot join device 1 with itself");
  BOOST_TEST(!none);
  refused(j.reduce(TN_BOOL, TN_REDUCE_SUM), TN_CODE_UNSUPPORTED, "NCCL does not reduce bool");
  refused(j.reduce(TN_F32, 9), TN_CODE_INVALID_ARGUMENT, "there is no reduction 9");
  refused(j.broadcast(2), TN_CODE_INVALID_ARGUMENT, "broadcast from member 2 of 2");
  refused(j.api.group_end(j.communicator), TN_CODE_INVALID_ARGUMENT,
          "no group of collectives was begun");
  ok(j.api.group_begin(j.communicator));
  refused(j.api.group_begin(j.communicator), TN_CODE_INVALID_ARGUMENT, "do not nest");
  ok(j.api.group_end(j.communicator));
  ok(j.reduce(TN_F32, TN_REDUCE_SUM, 0));  // nothing to do is no error
  j.put({1}, {2});
  ok(j.reduce(TN_I32, TN_REDUCE_SUM, 1));
  j.check({3}, {3});
}
