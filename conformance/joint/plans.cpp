#include <algorithm>
#include <mutex>
#include <thread>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/checks.h>

namespace tenon::conformance::joint {

namespace {

std::vector<float> input(const Operator& op, size_t salt) {
  std::vector<float> values(static_cast<size_t>(op.count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = (i + salt) % 3 == 0 ? -2.0f : 0.0f;
  return values;
}
void check(const std::vector<float>& found, const Operator& op, size_t salt, const char* when) {
  for (size_t i = 0; i < found.size(); ++i) {
    const float expected = (i + salt) % 3 == 0 ? op.of_minus_two : op.of_zero;
    require(found[i] == expected, "{}: element {} of {} is {}, expected {}", when, i, op.name,
            found[i], expected);
  }
}

// Run again before the last run is done, with other pointers.
void other_pointers(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op, op.count);
  Plan plan(bench, request.get());
  Stream stream(bench);
  std::vector<std::unique_ptr<Memory>> in, out;
  const auto count = static_cast<size_t>(op.count);
  for (size_t i = 0; i < 20; ++i) {
    in.push_back(std::make_unique<Memory>(bench, count * sizeof(float)));
    out.push_back(std::make_unique<Memory>(bench, count * sizeof(float)));
    stream.upload(*in[i], input(op, i));
  }
  for (size_t i = 0; i < in.size(); ++i) plan.run(stream, *in[i], *out[i]);
  for (size_t i = 0; i < in.size(); ++i)
    check(stream.download(*out[i], count), op, i, "one plan with many pointers");
}

// Runs of one plan on memory that queued copies write, behind one that takes its time.
void in_order(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op, op.count);
  Plan plan(bench, request.get());
  Stream stream(bench);
  const uint64_t bytes = static_cast<size_t>(op.count) * sizeof(float), many = 4 << 20;
  Memory sent(bench, bytes), in(bench, bytes), out(bench, bytes), from(bench, many),
      to(bench, many);
  for (size_t turn = 0; turn < 50; ++turn) {
    const auto values = input(op, turn);
    stream.upload(sent, values);
    stream.copy(to.data(), from.data(), many, true, true);
    stream.copy(in.data(), sent.data(), bytes, true, true);
    plan.run(stream, in, out);
    stream.copy(sent.data(), out.data(), bytes, true, true);
    check(stream.download(sent, values.size()), op, turn, "copy, run, copy on one stream");
  }
}

// The host may reuse the arrays of a run as soon as the call has returned. Here the run waits
// behind slow work, and the arrays hold other pointers by the time it begins.
void arrays_of_a_run(Bench& bench) {
  const Operator op = known_operator(bench);
  Request request(op, op.count);
  Plan plan(bench, request.get());
  const auto count = static_cast<size_t>(op.count);
  const uint64_t bytes = count * sizeof(float), many = 4 << 20;
  Memory in(bench, bytes), out(bench, bytes), other_in(bench, bytes), other_out(bench, bytes),
      from(bench, many), to(bench, many);
  Arguments own;  // outlives the stream, which waits for what may read it
  Stream stream(bench);
  const std::vector<float> untouched(count, 7);
  stream.upload(other_in, std::vector<float>(count, 0));
  for (size_t turn = 0; turn < 10; ++turn) {
    stream.upload(in, input(op, turn));
    stream.upload(other_out, untouched);
    for (int i = 0; i < 4; ++i) stream.copy(to.data(), from.data(), many, true, true);
    plan.run(own, stream, in.data(), out.data());
    own.inputs[0] = other_in.data();
    own.outputs[0] = other_out.data();
    const auto found = stream.download(out, count);
    require(stream.download(other_out, count) == untouched,
            "the array tn_run.outputs was read after run had returned, when it held another "
            "pointer. It lives for the call only: copy the pointers into what is queued "
            "(sdk::make_queued_plan does)");
    check(found, op, turn,
          "the arrays of tn_run were changed after run had returned (they live for the call only: "
          "copy their pointers into what is queued)");
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
          Request request(op, op.count);
          Plan plan(bench, request.get());
          const auto values = input(op, t + turn);
          Memory in(bench, values.size() * sizeof(float)),
              out(bench, values.size() * sizeof(float));
          stream.upload(in, values);
          plan.run(stream, in, out);
          check(stream.download(out, values.size()), op, t + turn, "four threads at once");
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
  Request request(op, 0);
  tn_plan* plan = nullptr;
  // The host does not run a plan whose outputs are empty, but a plugin may be asked for one.
  if (tn_error* no = bench.planner.plan_create(bench.planner_device, request.get(), &plan)) {
    const tn_code code = no->code;
    const std::string message = plugins::take_message(no);
    require(code == TN_CODE_UNSUPPORTED, "plan_create of an empty tensor failed: {}", message);
    return;
  }
  bench.planner.destroy(plan);
  Plan again(bench, request.get());
  Stream stream(bench);
  again.run(stream, nullptr, nullptr);
  stream.wait();
}

}  // namespace

void add_plan_checks(const Add& add) {
  add("plans", "one plan runs on many pointers before the first run is done", other_pointers);
  add("plans", "runs and copies of one stream happen in order", in_order);
  add("plans", "the arrays of a run are not read after it has returned", arrays_of_a_run);
  add("plans", "threads make and run plans at the same time", many_threads);
  add("plans", "an empty tensor does no harm", empty_tensors);
}

}  // namespace tenon::conformance::joint
