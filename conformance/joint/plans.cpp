#include <algorithm>
#include <mutex>
#include <thread>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/checks.h>
#include <tenon/plugins/host/host_version.h>

namespace tenon::conformance::joint {

namespace {

constexpr size_t kCount = 1031;

std::vector<float> input(size_t salt) {
  std::vector<float> values(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = (i + salt) % 3 == 0 ? -2.0f : 0.0f;
  return values;
}
// f(0) is 0 for all operators that known_operator knows.
void check(const std::vector<float>& found, const Operator& op, size_t salt, const char* when) {
  for (size_t i = 0; i < kCount; ++i) {
    const float expected = (i + salt) % 3 == 0 ? op.of_minus_two : 0.0f;
    require(found[i] == expected, "{}: element {} of {} is {}, expected {}", when, i, op.name,
            found[i], expected);
  }
}

// Run again before the last run is done, with other pointers.
void other_pointers(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op.name, kCount);
  Plan plan(bench, request.get());
  Stream stream(bench);
  std::vector<std::unique_ptr<Memory>> in, out;
  for (size_t i = 0; i < 20; ++i) {
    in.push_back(std::make_unique<Memory>(bench, kCount * sizeof(float)));
    out.push_back(std::make_unique<Memory>(bench, kCount * sizeof(float)));
    stream.upload(*in[i], input(i));
  }
  for (size_t i = 0; i < in.size(); ++i) plan.run(stream, *in[i], *out[i]);
  for (size_t i = 0; i < in.size(); ++i)
    check(stream.download(*out[i], kCount), op, i, "one plan with many pointers");
}

// Runs of one plan on memory that the run before wrote.
void in_order(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op.name, kCount);
  Plan plan(bench, request.get());
  Stream stream(bench);
  Memory a(bench, kCount * sizeof(float)), b(bench, kCount * sizeof(float));
  for (size_t turn = 0; turn < 50; ++turn) {
    const auto values = input(turn);
    stream.copy(a.data(), values.data(), kCount * sizeof(float), true, false);
    plan.run(stream, a, b);
    stream.copy(a.data(), b.data(), kCount * sizeof(float), true, true);
    check(stream.download(a, kCount), op, turn, "copy, run, copy on one stream");
  }
}

// Plans, memory and streams of several threads at once.
void many_threads(Bench& bench) {
  const Operator op = known_operator(bench);
  std::mutex mutex;
  std::string failure;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      try {
        Stream stream(bench);
        for (size_t turn = 0; turn < 25; ++turn) {
          Request request(op.name, kCount);
          Plan plan(bench, request.get());
          Memory in(bench, kCount * sizeof(float)), out(bench, kCount * sizeof(float));
          stream.upload(in, input(t + turn));
          plan.run(stream, in, out);
          check(stream.download(out, kCount), op, t + turn, "four threads at once");
        }
      } catch (const std::exception& e) {
        std::lock_guard lock(mutex);
        failure = e.what();
      }
    });
  for (auto& t : threads) t.join();
  require(failure.empty(), failure);
}

void empty_tensors(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op.name, 0);
  tn_plan* plan = nullptr;
  // The host does not run a plan whose outputs are empty, but a plugin may be asked for one.
  if (tn_error* no = bench.api.plan_create(bench.device, request.get(), &plan)) {
    const tn_code code = no->code;
    const std::string message = plugins::take_message(no);
    require(code == TN_CODE_UNSUPPORTED, "plan_create of an empty tensor failed: {}", message);
    return;
  }
  Stream stream(bench);
  void* nothing[] = {nullptr};
  tn_run args{};
  args.struct_size = std::min(sizeof args, plugins::host_version().run_bytes);
  args.inputs = args.outputs = nothing;
  args.stream = stream.handle();
  args.num_inputs = args.num_outputs = 1;
  tn_error* error = bench.api.run(plan, &args);
  if (!error) stream.wait();
  bench.api.destroy(plan);
  must("run of an empty tensor", error);
}

}  // namespace

void add_plan_checks(const Add& add) {
  add("plans", "one plan runs on many pointers before the first run is done", other_pointers);
  add("plans", "runs and copies of one stream happen in order", in_order);
  add("plans", "threads make and run plans at the same time", many_threads);
  add("plans", "an empty tensor does no harm", empty_tensors);
}

}  // namespace tenon::conformance::joint
