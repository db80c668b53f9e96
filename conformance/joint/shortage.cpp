#include <atomic>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/checks.h>
#include <tenon/core/error.h>

namespace tenon::conformance::joint {

namespace {

constexpr int64_t kElements = 3 << 18;

// The plugin's memory_alloc while its memory is short: what is asked for next is more than there
// can be, so that the plugin itself fails, in its own way.
std::atomic<int> requests_too_large{0};
tn_error* (*memory_alloc)(tn_device*, uint32_t, uint64_t, void**) = nullptr;

tn_error* memory_alloc_of_more(tn_device* device, uint32_t kind, uint64_t bytes, void** memory) {
  const bool too_large = requests_too_large > 0 && requests_too_large-- > 0;
  return memory_alloc(device, kind, too_large ? uint64_t{1} << 60 : bytes, memory);
}

// The next `times` allocations of the plugin fail. Nothing may run on its devices when it begins
// and ends.
class Shortage {
 public:
  Shortage(Bench& bench, int times) : backend_(bench.backend), before_(bench.api.table()) {
    memory_alloc = before_.memory_alloc;
    requests_too_large = times;
    auto table = before_;
    table.memory_alloc = memory_alloc_of_more;
    backend_.start(table);
  }
  ~Shortage() { backend_.start(before_); }
  Shortage(const Shortage&) = delete;
  bool has_come() const { return requests_too_large == 0; }
  void end() { requests_too_large = 0; }

 private:
  plugins::Backend& backend_;
  const tn_backend_api before_;
};

void compute(Bench& bench, const Operator& op, const char* when) {
  const Tensor x = full({kElements}, -2, {.device = bench.subject.reference});
  const Tensor y = op.call(x.to(bench.subject.device));
  const auto found = y.to_vector<float>();
  for (size_t i = 0; i < found.size(); ++i)
    require(found[i] == op.of_minus_two, "{}: element {} of {} is {}, expected {}", when, i,
            op.name, found[i], op.of_minus_two);
}

void idle(Bench& bench) {
  synchronize();
  empty_cache(bench.subject.device);
}

void once(Bench& bench) {
  const Operator op = known_operator(bench);
  compute(bench, op, "with enough memory");
  idle(bench);
  Shortage shortage(bench, 1);
  try {
    compute(bench, op, "after the host has freed its cache and asked once more");
  } catch (const Error& e) {
    throw Mismatch(
        fmt::format("where memory was short once, {} failed, although the host frees its cache and "
                    "asks once more after TN_CODE_OUT_OF_MEMORY: {}",
                    op.name, e.what()));
  }
  idle(bench);
  require(shortage.has_come(), "memory was not asked for where the cache is empty");
}

void for_a_while(Bench& bench) {
  const Operator op = known_operator(bench);
  idle(bench);
  Shortage shortage(bench, 1000);
  std::string reason;
  try {
    compute(bench, op, "without memory");
  } catch (const OutOfMemoryError& e) {
    reason = e.what();
  }
  require(!reason.empty(), "memory_alloc of 2^60 bytes reported success");
  shortage.end();
  try {
    compute(bench, op, "after memory was short");
  } catch (const Error& e) {
    throw Mismatch(
        fmt::format("{} fails although memory is no longer short: {}", op.name, e.what()));
  }
  idle(bench);
}

}  // namespace

void add_shortage_checks(const Add& add) {
  add("memory", "an operator goes on after memory was short once", once);
  add("memory", "it works again after memory was short for a while", for_a_while);
}

}  // namespace tenon::conformance::joint
