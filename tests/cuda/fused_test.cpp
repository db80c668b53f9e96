// Programs of pointwise operators on the cuda plugin: kernels that are written for a program and
// compiled while the test runs, here for the CPU by the emulated NVRTC. They have the bits of their
// members run one by one.
#include <filesystem>
#include <set>
#include <thread>

#include <tenon/conformance/fused.h>
#include <tenon/core/runtime/dispatch_stats.h>
#include <tenon/plugins/sdk/requests/fused.h>
#include <tenon/tenon.h>

#include "cuda/compare.h"
#include "cuda/emulated/counters.h"
#include "cuda/in_runtime.h"
#include "files.h"

using namespace tenon;
using namespace tenon::test;
using conformance::FusedCase;

namespace {

// The folder is this run's own, so that each kernel is compiled in it.
struct WithCompiler : EmulatedCuda {
  WithCompiler() {
    setenv("TENON_CUDA_KERNEL_CACHE", folder.path().c_str(), 1);
    if (const char* places = std::getenv("TENON_CUDA_LIBRARY_PATH"))
      setenv("TENON_CUDA_LIBRARY_PATH",
             (places + (":" + build_dir()) + "/tests/cuda/nvrtc").c_str(), 1);
  }
  TempFolder folder;
};

BOOST_TEST_GLOBAL_FIXTURE(WithCompiler);

// On a GPU, NVRTC may be missing: a reason to say so, and no error.
bool has_compiler() {
  static const bool has = [] {
    auto compiled = compile([](const Tensor& x) { return neg(exp(x)); });
    const Tensor x = random_values({5}, f32, false).to(kGpu);
    for (int i = 0; i < 3; ++i) compiled(x);
    const std::string text = compiled.explain();
    if (text.find("NVRTC cannot be used") == text.npos) return true;
    BOOST_TEST_MESSAGE("skipped: " << text);
    BOOST_REQUIRE(std::getenv("TENON_TEST_GPU"));
    return false;
  }();
  return has;
}

}  // namespace

namespace {

// The operators for which the plugin has no kernel.
const std::set<std::string> kNotOffered = {"binary_cross_entropy"};

bool takes(const sdk::FusedMember& member, DType dtype) {
  return member.takes >> static_cast<uint32_t>(dtype) & 1;
}

// How many runs of fused programs a call makes.
template <class F>
uint64_t fused_runs(F&& f) {
  count_dispatch();
  reset_dispatch_stats();
  f();
  synchronize();
  const DispatchStats stats = dispatch_stats();
  count_dispatch(false);
  uint64_t runs = 0;
  for (auto& r : stats.runs) runs += r.op == "fused" && r.device == kGpu.str() ? r.runs : 0;
  return runs;
}

// One kernel on the device, with the bits of its members.
void require_one_kernel(FusedCase& c, const std::string& what) {
  const uint64_t runs = fused_runs([&] {
    try {
      c.run();
    } catch (const std::exception& e) {
      BOOST_ERROR(what << ": " << e.what());
    }
  });
  BOOST_CHECK_MESSAGE(runs == 1, what << ": " << runs << " fused programs ran");
}

// A program of a few members of one dtype, as it has eight results at most.
class Members {
 public:
  explicit Members(DType dtype) : dtype_(dtype) {}

  // In each form that it has: with tensors, and with a number on either side.
  void add(const sdk::FusedMember& m) {
    std::vector<FusedValue> operands;
    for (size_t k = 0; k < m.operands; ++k)
      operands.push_back(k == 0 && m.selects() ? input(3, boolean) : input(k, dtype_));
    const std::string_view op = m.op;
    if (op == "copy")
      out(case_.cast(operands[0], DType::bf16));
    else if (op == "polygamma")
      out(case_.of(op, operands, {}, "n", 2));
    else
      out(case_.of(op, operands, std::vector<double>(m.scalars, 0.25)));
    if (!m.number_for_last || m.operands != 2) return;
    out(case_.with(op, operands[0], 3));
    out(case_.after(2, op, operands[0]));
  }
  bool has_room() const { return results_ <= 5; }
  void run() {
    if (results_) require_one_kernel(case_, std::string(name_of(dtype_)));
  }

 private:
  FusedValue input(size_t k, DType dtype) {
    if (inputs_[k].kind == FusedValue::absent)
      inputs_[k] = case_.in(random_values({37}, dtype).to(kGpu));
    return inputs_[k];
  }
  void out(FusedValue value) {
    case_.out(value);
    ++results_;
  }

  DType dtype_;
  FusedCase case_;
  FusedValue inputs_[4];
  size_t results_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(members_have_the_bits_of_their_own_kernels) {
  if (!has_compiler()) return;
  for (const DType dtype : {f32, f64, f16, bf16, i64, i32, u8, boolean}) {
    // In some dtypes every sixth is enough: the formulas of the others are the same text.
    const bool all = dtype == f32 || dtype == i64 || dtype == boolean;
    auto members = std::make_unique<Members>(dtype);
    size_t number = 0;
    for (auto& m : sdk::kFusedMembers) {
      if (!takes(m, dtype) || m.reduces || kNotOffered.contains(m.op)) continue;
      if (!all && number++ % 6 != static_cast<size_t>(dtype) % 6) continue;
      if (!members->has_room()) {
        members->run();
        members = std::make_unique<Members>(dtype);
      }
      members->add(m);
    }
    members->run();
  }
}

// Lines, single values, rows that repeat, transposed and cut tensors, packs and what is left over.
BOOST_AUTO_TEST_CASE(any_layout_is_taken) {
  if (!has_compiler()) return;
  const auto values = [](const Shape& shape, DType dtype = f32) {
    return random_values(shape, dtype, false).to(kGpu);
  };
  for (const int64_t cols : {int64_t{12}, int64_t{33}, int64_t{1024}}) {
    const Shape shape{3, 10, cols};
    const Tensor across = values({3, cols, 10}).transpose(1, 2),
                 gaps = values({3, 10, 2 * cols + 1}).slice(2, 1, 2 * cols + 1, 2),
                 part = values({3, 10, cols + 4}).slice(2, 0, cols);
    const std::vector<std::vector<Tensor>> pairs = {
        {values(shape), values(shape)},
        {values(shape), values({}).expand(shape)},
        {values(shape), values({cols}).expand(shape)},
        {values({10, 1}).expand(shape), values({3, 1, cols}).expand(shape)},
        {across, values(shape)},
        {gaps, values({3, 1, 1}).expand(shape)},
        {part, values(shape).to(f16)},
        {values({30 * cols + 1}).slice(0, 1, 30 * cols + 1).view(shape), values(shape)},
    };
    for (auto& inputs : pairs) {
      FusedCase c;
      const auto a = c.in(inputs[0]), b = c.in(inputs[1]);
      const auto wide = c.dtype_of(b) == f32 ? b : c.cast(b, f32);
      const auto sum = c.of("add", {c.of("square", {a}), c.with("mul", wide, 0.5)});
      c.out(sum);
      c.out(c.of("gt", {sum, wide}));
      require_one_kernel(c, inputs[0].shape().str());
    }
  }
}

// Each thread moves a pack of 16 bytes at once; what is left over goes element by element.
BOOST_AUTO_TEST_CASE(threads_move_whole_packs) {
  if (std::getenv("TENON_TEST_GPU") || !has_compiler()) return;
  const auto& count =
      in_runtime<emulated::CudaCounters>("tenon_emulated_cuda_counters")->wide_accesses;
  const auto accesses = [&](const Tensor& a, const Tensor& b) {
    FusedCase c;
    const auto x = c.in(a), y = c.in(b);
    c.out(c.of("square", {c.of("mul", {c.of("abs", {x}), y})}));
    const uint64_t before = count;
    require_one_kernel(c, "packs");
    return count - before;
  };
  const auto values = [](const Shape& shape) { return random_values(shape, f32).to(kGpu); };
  BOOST_TEST(accesses(values({4003}), values({4003})) == 3000u);  // of two inputs and a result
  BOOST_TEST(accesses(values({3, 1024}), values({1024}).expand({3, 1024})) == 3 * 768u);
  BOOST_TEST(accesses(values({4001}).slice(0, 1, 4001), values({4000})) == 0u);
}

// Reductions of rows, in the order in which their own kernels add: lanes of a warp and whole
// blocks, packs and single elements.
BOOST_AUTO_TEST_CASE(rows_have_the_bits_of_their_members) {
  if (!has_compiler()) return;
  for (const int64_t cols : {int64_t{5}, int64_t{96}, int64_t{1500}})
    for (const DType dtype : {f32, f64, f16}) {
      if (dtype != f32 && cols != 96) continue;
      const int64_t rows = 40;
      FusedCase c;  // softmax, with what layer norm and others need beside it
      const auto x = c.in(random_values({rows, cols}, dtype, false).to(kGpu)),
                 bias = c.in(random_values({cols}, dtype, false).to(kGpu));
      const auto biased = c.of("add", {x, bias}), top = c.of("amax", {biased}),
                 e = c.of("exp", {c.of("sub", {biased, top})}), sum = c.of("sum", {e});
      c.out(c.of("div", {e, sum}));
      c.out(c.of("add", {c.of("log", {sum}), top}));
      c.out(c.of("mean", {biased}));
      c.out(c.of("var", {x}, {}, "correction", 1));
      c.out(c.of("amin", {x}));
      c.out(c.of("logsumexp", {e}));
      require_one_kernel(c, "rows of " + std::to_string(cols) + " " + std::string(name_of(dtype)));
    }
}

BOOST_AUTO_TEST_CASE(rows_of_whole_numbers) {
  if (!has_compiler()) return;
  for (const DType dtype : {i64, i32, u8, boolean}) {
    FusedCase c;
    const auto x = c.in(random_values({3, 20, 33}, dtype).to(kGpu)),
               y = c.in(random_values({3, 1, 33}, dtype).to(kGpu));
    const auto both = c.of("add", {x, y});
    c.out(c.of("sum", {both}));
    c.out(c.of("prod", {both}));
    if (dtype == boolean) {
      c.out(c.of("any", {x}));
      c.out(c.of("all", {both}));
    } else {
      c.out(c.of("amax", {both}));
      c.out(c.of("sub", {x, c.of("amin", {both})}));
    }
    require_one_kernel(c, std::string(name_of(dtype)));
  }
}

// Rows that lie with gaps or across, that repeat, and results over what they are made of.
BOOST_AUTO_TEST_CASE(rows_of_any_layout) {
  if (!has_compiler()) return;
  const auto values = [](const Shape& shape) { return random_values(shape, f32, false).to(kGpu); };
  const std::vector<std::pair<Tensor, Tensor>> pairs = {
      {values({3, 10, 64}), values({10, 1})},
      {values({3, 64, 10}).transpose(1, 2), values({64})},
      {values({3, 10, 129}).slice(2, 1, 129, 2), values({3, 1, 1})},
      {values({64}), values({3, 10, 1})},
      {values({10, 3, 64}).transpose(0, 1), values({3, 10, 64})},
  };
  for (auto& [first, second] : pairs) {
    FusedCase c;
    const auto x = c.in(first), y = c.in(second), centered = c.of("sub", {x, y}),
               norm =
                   c.of("rsqrt", {c.with("add", c.of("mean", {c.of("square", {centered})}), 1e-5)});
    c.out(c.of("mul", {centered, norm}));
    c.out(norm);
    require_one_kernel(c, first.shape().str() + " and " + second.shape().str());
  }
  FusedCase c;
  const auto x = c.in(values({30, 64}).clone()), scale = c.in(values({30, 1}).clone()),
             scaled = c.of("mul", {x, scale});
  c.out(scaled, x);
  c.out(c.of("add", {c.of("sum", {scaled}), scale}), scale);
  require_one_kernel(c, "rows in place");
}

BOOST_AUTO_TEST_CASE(results_overwrite_inputs) {
  if (!has_compiler()) return;
  FusedCase c;
  const Tensor x = random_values({1031}, f32).to(kGpu);
  const auto a = c.in(x.clone()), b = c.in(random_values({1031}, f32).to(kGpu)),
             sum = c.of("add", {a, b});
  c.out(sum, a);
  c.out(c.of("mul", {sum, a}));
  require_one_kernel(c, "in place");
}

// Half types are computed in f32 and rounded after each member.
BOOST_AUTO_TEST_CASE(each_member_rounds) {
  if (!has_compiler()) return;
  for (const DType dtype : {f16, bf16}) {
    FusedCase c;
    const auto a = c.in(random_values({513}, dtype).to(kGpu)),
               b = c.in(random_values({513}, dtype).to(kGpu));
    auto v = c.of("mul", {a, b});
    for (int i = 0; i < 8; ++i) v = c.of(i % 2 ? "mul" : "add", {v, i % 3 ? a : b});
    c.out(v);
    require_one_kernel(c, std::string(name_of(dtype)));
  }
}

namespace {

// What explain() says of a chain of operators on the device, whose results are right.
std::string explained(double factor) {
  auto compiled = compile([=](const Tensor& x) { return sigmoid(relu(x * factor + 1.0)) * 0.5; });
  const Tensor x = random_values({60, 50}, f32, false);
  for (int i = 0; i < 4; ++i)
    require_same(compiled(x.to(kGpu)), sigmoid(relu(x * factor + 1.0)) * 0.5, "compiled", 1e-6);
  return compiled.explain();
}

}  // namespace

BOOST_AUTO_TEST_CASE(compiled_functions_have_groups) {
  if (!has_compiler()) return;
  const std::string text = explained(2.0);
  BOOST_TEST(text.find("fused: mul, add, relu, sigmoid, mul\n") != text.npos, text);
}

// A group that does not compile is run by its members, and the reason is not a page long.
BOOST_AUTO_TEST_CASE(what_does_not_compile_is_a_reason) {
  if (std::getenv("TENON_TEST_GPU")) return;
  setenv("TENON_EMULATED_NVRTC_FAILS", "1", 1);
  auto compiled = compile([](const Tensor& x) { return floor(tanh(x) + x); });
  const Tensor x = random_values({50}, f32, false);
  for (int i = 0; i < 4; ++i)
    require_same(compiled(x.to(kGpu)), floor(tanh(x) + x), "by members", 1e-6);
  unsetenv("TENON_EMULATED_NVRTC_FAILS");
  const std::string text = compiled.explain();
  const size_t at = text.find("NVRTC: NVRTC_ERROR_COMPILATION: program.cu(1): error: ??");
  BOOST_REQUIRE_MESSAGE(at != text.npos, text);
  BOOST_TEST(text.find("not fused: tanh, add, floor, because") != text.npos, text);
  BOOST_TEST(text.size() < 3000u);
}

// A device that is full when a kernel is loaded refuses that, and not the program for good.
BOOST_AUTO_TEST_CASE(no_memory_for_a_kernel_passes) {
  if (std::getenv("TENON_TEST_GPU") || !has_compiler()) return;
  for (const char* what : {"library", "function"}) {
    FusedCase c;
    const auto x = c.in(random_values({99}, f32).to(kGpu));
    c.out(c.of("neg", {c.of(what[0] == 'l' ? "sinh" : "cosh", {x})}));
    setenv("TENON_EMULATED_REFUSE_KERNELS", what, 1);
    for (int i = 0; i < 2; ++i) require_error<OutOfMemoryError>([&] { c.run(); }, "out of memory");
    unsetenv("TENON_EMULATED_REFUSE_KERNELS");
    require_one_kernel(c, what);
  }
}

BOOST_AUTO_TEST_CASE(threads_share_a_kernel) {
  if (!has_compiler()) return;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  const Tensor x = random_values({77}, f32).to(kGpu);
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      FusedCase c;
      const auto a = c.in(x);
      c.out(c.of("exp", {c.of("neg", {c.of("abs", {a})})}));
      try {
        c.run();
        ++right;
      } catch (const std::exception&) {
      }
    });
  for (auto& thread : threads) thread.join();
  BOOST_TEST(right == 3);
}

// Kernels are kept in files.
BOOST_AUTO_TEST_CASE(files_are_kept) {
  if (std::getenv("TENON_TEST_GPU")) return;
  size_t kernels = 0;
  for (auto& file : std::filesystem::directory_iterator(std::getenv("TENON_CUDA_KERNEL_CACHE")))
    kernels += file.path().extension() == ".kernel";
  BOOST_TEST(kernels > 10u);
}
