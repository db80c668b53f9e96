// Programs made at random of operators, views, changes in place and copies over several devices and
// their streams. What they compute, all at once, has to be what a plain loop computes, one step
// after the other.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "fuzz.h"
#include "process/child.h"
#include "runtime/random_program.h"
#include "sim/held_up_stream.h"
#include "support/expect.h"
#include "support/sanitized.h"

BOOST_AUTO_TEST_SUITE(order_test, *boost::unit_test::fixture<tenon::test::SimFolder>())

using namespace tenon;
using namespace tenon::test;

namespace {

struct Slot {
  Tensor tensor;
  Plain plain;
  std::string device() const { return tensor.device().str(); }
};

// The further streams of each device.
const std::vector<std::vector<Stream>>& streams() {
  static const auto all = [] {
    std::vector<std::vector<Stream>> made;
    for (auto& device : kDevices) {
      auto& of_device = made.emplace_back();
      for (uint32_t i = 0; i < kStreams; ++i) of_device.emplace_back(device);
    }
    return made;
  }();
  return all;
}

// The gate that holds up all devices. A thread opens it if nothing happens for a minute, which
// would mean that somebody waited for a device although nobody had to.
class AllHeld {
 public:
  AllHeld() : gate_(*sim_backend().extension<sim::Gate>("sim.gate", 1)) {
    rescue_ = std::jthread([this](std::stop_token stop) {
      for (int ticks = 0; !stop.stop_requested(); ++ticks) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (moved_.exchange(false)) ticks = 0;
        if (ticks > 3000) rescued_ = true, gate_.open();
      }
    });
  }
  // Returns what keeps the devices waiting.
  std::vector<Tensor> shut() {
    gate_.shut();
    Tensor stuck = empty({3}, {.device = "sim:2"});
    stuck.fill_(sim::kWaitsAtGate);
    std::vector<Tensor> waiting;
    for (size_t i = 0; i < kDevices.size(); ++i) {
      waiting.push_back(stuck.to(kDevices[i]));
      for (auto& stream : streams()[i]) {
        const StreamGuard guard(stream);
        waiting.push_back(stuck.to(kDevices[i]));
      }
    }
    return waiting;
  }
  void open() {
    gate_.open();
    moved_ = true;
  }
  bool rescued() const { return rescued_; }

 private:
  const sim::Gate& gate_;
  std::atomic<bool> moved_{false}, rescued_{false};
  std::jthread rescue_;
};

class Run {
 public:
  Run(const RandomProgram& program, AllHeld& held) : p_(program), held_(held) {}

  // Returns what is wrong, or nothing. With `text`, notes what each step does.
  std::string go(std::string* text = nullptr) {
    text_ = text;
    try {
      queue();
      const bool all_busy = note_busy();
      if (p_.gated) held_.open();
      for (size_t i = 0; i < kSlots && wrong_.empty(); ++i) compare(i, "at the end");
      if (p_.gated && !all_busy) wrong_ = "a device had finished while all were held up";
    } catch (const std::exception& e) {
      wrong_ = e.what();
      held_.open();
    }
    return wrong_;
  }
  size_t devices_busy() const { return busy_; }

 private:
  void queue() {
    if (p_.gated)
      waiting_ = held_.shut();
    else
      for (auto& device : kDevices) work_on(device);
    for (size_t i = 0; i < kSlots; ++i) put(i, made_on(i, i % kDevices.size()), "made");
    for (auto& s : p_.steps) {
      std::optional<StreamGuard> here, there;
      if (s.stream) {
        say("in stream " + std::to_string(s.stream) + ":");
        const size_t own = place_of(slots_[s.a].tensor.device());
        here.emplace(streams()[own][s.stream - 1]);
        if (own != s.device) there.emplace(streams()[s.device][s.stream - 1]);
      }
      step(s);
    }
  }
  static size_t place_of(Device device) {
    return static_cast<size_t>(std::find(kDevices.begin(), kDevices.end(), device) -
                               kDevices.begin());
  }
  // Returns whether all devices have something to do.
  bool note_busy() {
    std::set<std::string> used, busy;
    for (auto& s : slots_) {
      used.insert(s.device());
      if (!s.tensor.is_ready()) busy.insert(s.device());
    }
    busy_ = busy.size();
    return busy == used;
  }
  // So much that the rest is queued behind it.
  void work_on(Device device) {
    auto found = std::find_if(matrices_.begin(), matrices_.end(),
                              [&](auto& m) { return m.first == device; });
    if (found == matrices_.end())
      found = matrices_.insert(found, {device, ones({64, 64}, {.device = device})});
    matmul(found->second, found->second);
  }

  Slot made_on(size_t i, size_t device) {
    const auto value = static_cast<float>(++made_ % 7) + static_cast<float>(i);
    std::vector<float> values(static_cast<size_t>(p_.n * p_.n));
    std::iota(values.begin(), values.end(), 0.0f);
    for (float& v : values) v += value;
    return {(arange(0, p_.n * p_.n, 1, {.device = kDevices[device]}) + value).reshape({p_.n, p_.n}),
            Plain::of(std::move(values), p_.n)};
  }

  // The first slot from `i` on that fits.
  Slot* find(size_t i, const std::function<bool(const Slot&)>& fits) {
    for (size_t k = 0; k < kSlots; ++k)
      if (fits(slots_[(i + k) % kSlots])) return &slots_[(i + k) % kSlots];
    return nullptr;
  }
  void put(size_t i, Slot slot, const std::string& what) {
    say("slot " + std::to_string(i) + " = " + what + " on " + slot.device());
    slots_[i] = std::move(slot);
  }
  void say(const std::string& line) {
    if (text_) *text_ += "  " + line + "\n";
  }
  std::string name(const Slot& s) const { return std::to_string(&s - slots_.data()); }
  // A copy from the host's queue to a device with its own makes the caller wait.
  bool may_copy(Device from, Device to) const {
    return !p_.gated || from.type() != "cpu" || to.type() == "cpu";
  }

  void compare(size_t i, const char* when) {
    if (slots_[i].tensor.to_vector<float>() != slots_[i].plain.values())
      wrong_ = "slot " + std::to_string(i) + " is wrong " + when;
  }

  void step(const Step& s) {
    Slot& a = slots_[s.a];
    const auto like_a = [&](const Slot& b) {
      return b.plain.rows == a.plain.rows && b.tensor.device() == a.tensor.device();
    };
    const auto binary = [&](const char* what, auto&& on_tensors, auto&& on_values) {
      Slot& b = *find(s.b, like_a);
      put(s.to,
          {on_tensors(a.tensor, b.tensor), Plain::of(combined(a.plain, b.plain, on_values), p_.n)},
          what + (" of " + name(a) + ", " + name(b)));
    };
    const auto in_place = [&](const char* what, auto&& on_tensors, auto&& on_values) {
      Slot* target = find(s.b, [&](const Slot& b) { return like_a(b) && b.plain.writable(); });
      if (!target) return;
      say(name(*target) + " " + what + " " + name(a));
      on_tensors(target->tensor, a.tensor);
      target->plain.set(combined(target->plain, a.plain, on_values));
    };
    const auto view = [&](const char* what, auto&& on_tensor, auto&& on_plain) {
      Slot* base = find(s.a, [&](const Slot& b) { return b.plain.rows == p_.n; });
      if (!base) return;
      Plain plain = base->plain;
      on_plain(plain);
      put(s.to, {on_tensor(base->tensor), plain}, what + (" of " + name(*base)));
    };
    const int64_t n = p_.n, half = p_.n / 2;
    using enum Kind;
    switch (s.kind) {
      case made:
        return put(s.to, made_on(s.to, s.device), "made");
      case add:
        return binary(
            "sum", [](auto& x, auto& y) { return x + y; }, std::plus<>());
      case subtract:
        return binary(
            "difference", [](auto& x, auto& y) { return x - y; }, std::minus<>());
      case larger:
        return binary(
            "larger", [](auto& x, auto& y) { return maximum(x, y); },
            [](float x, float y) { return std::max(x, y); });
      case halve:
        return put(
            s.to,
            {a.tensor * 0.5,
             Plain::of(combined(a.plain, a.plain, [](float x, float) { return x * 0.5f; }), n)},
            "half of " + name(a));
      case duplicate:
        return put(s.to, {a.tensor.clone(), Plain::of(a.plain.values(), n)}, "clone of " + name(a));
      case join: {
        Slot* first = find(s.a, [&](const Slot& b) { return b.plain.rows == half; });
        if (!first) return;
        Slot& second = *find(s.b, [&](const Slot& b) {
          return b.plain.rows == half && b.tensor.device() == first->tensor.device();
        });
        auto values = first->plain.values();
        for (float v : second.plain.values()) values.push_back(v);
        return put(s.to, {cat({first->tensor, second.tensor}, 0), Plain::of(values, n)},
                   "cat of " + name(*first) + ", " + name(second));
      }
      case add_in_place:
        return in_place(
            "+=", [](auto& x, auto& y) { x += y; }, std::plus<>());
      case subtract_in_place:
        return in_place(
            "-=", [](auto& x, auto& y) { x -= y; }, std::minus<>());
      case halve_in_place:
        return in_place(
            "*= 0.5, beside", [](auto& x, auto&) { x *= 0.5; },
            [](float x, float) { return x * 0.5f; });
      case fill_in:
        return in_place(
            "= 3, beside", [](auto& x, auto&) { x.fill_(3); }, [](float, float) { return 3.0f; });
      case copy_into: {
        Slot* target = find(s.b, [&](const Slot& b) {
          return b.plain.rows == a.plain.rows && b.plain.writable() &&
                 may_copy(a.tensor.device(), b.tensor.device());
        });
        if (!target) return;
        say(name(*target) + " on " + target->device() + " gets a copy of " + name(a) + " on " +
            a.device());
        target->tensor.copy_(a.tensor);
        return target->plain.set(a.plain.values());
      }
      case move: {
        const Device device = kDevices[s.device];
        const bool stays = device == a.tensor.device() || !may_copy(a.tensor.device(), device);
        if (stays) return put(s.to, a, "alias of " + name(a));
        return put(s.to, {a.tensor.to(device), Plain::of(a.plain.values(), n)},
                   "copy of " + name(a) + " on " + a.device());
      }
      case transposed:
        return view(
            "transposed", [](auto& x) { return x.t(); },
            [](Plain& x) { std::swap(x.row_stride, x.column_stride); });
      case top:
        return view(
            "top", [&](auto& x) { return x.narrow(0, 0, half); }, [&](Plain& x) { x.rows = half; });
      case bottom:
        return view(
            "bottom", [&](auto& x) { return x.narrow(0, half, half); },
            [&](Plain& x) { x.rows = half, x.offset += half * x.row_stride; });
      case every_other:
        return view(
            "every other row", [&](auto& x) { return slice(x, 0, 0, n, 2); },
            [&](Plain& x) { x.rows = half, x.row_stride *= 2; });
      case row: {
        const int64_t k = s.b % half;
        return view(
            "expanded row",
            [&](auto& x) {
              return x.narrow(0, k, 1).expand({n, n});
            },
            [&](Plain& x) { x.offset += k * x.row_stride, x.row_stride = 0; });
      }
      case read:
        if (!p_.gated && wrong_.empty()) compare(s.a, "when it is read");
        return;
      case wait:
        if (!p_.gated) a.tensor.wait();
        return;
      case kKinds:
        return;
    }
  }

  const RandomProgram& p_;
  AllHeld& held_;
  std::array<Slot, kSlots> slots_;
  std::vector<Tensor> waiting_;
  std::string wrong_;
  std::string* text_ = nullptr;
  // With what devices are kept busy. Gone after the run: other tests count what devices hold.
  std::vector<std::pair<Device, Tensor>> matrices_;
  size_t busy_ = 0;
  uint32_t made_ = 0;
};

// Whether it fails within some runs: what is wrong with the order of work may depend on chance.
bool fails(const RandomProgram& program, AllHeld& held) {
  for (int i = 0; i < 30; ++i)
    if (!Run(program, held).go().empty()) return true;
  return false;
}

// Leaves out what the failure does not need.
RandomProgram smallest(RandomProgram program, AllHeld& held) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (size_t part = std::max<size_t>(program.steps.size() / 2, 1); part > 0; part /= 2)
    for (size_t from = 0; from < program.steps.size();) {
      if (std::chrono::steady_clock::now() > end) return program;
      RandomProgram less = program;
      const auto first = less.steps.begin() + static_cast<int64_t>(from);
      less.steps.erase(first,
                       first + static_cast<int64_t>(std::min(part, program.steps.size() - from)));
      if (fails(less, held))
        program = less;
      else
        from += part;
    }
  return program;
}

uint64_t first_seed() {
  const char* seed = std::getenv("TENON_FUZZ_SEED");
  return seed ? std::strtoull(seed, nullptr, 10) : 1;
}

}  // namespace

// TENON_FUZZ_SEED=n begins with the program of that seed. The long form goes on for all the time.
BOOST_AUTO_TEST_CASE(programs_on_several_devices_and_streams_compute_what_a_loop_computes) {
  NoGrad guard;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration<double>(fuzz_long() ? fuzz_seconds() : 0);
  const uint64_t first = first_seed(), least = kSanitized ? 100 : 2000;
  AllHeld held;
  size_t busy = 0;
  for (uint64_t seed = first; seed < first + least || std::chrono::steady_clock::now() < end;
       ++seed) {
    const RandomProgram program = make_program(seed);
    Run run(program, held);
    const std::string wrong = run.go();
    busy = std::max(busy, run.devices_busy());
    if (wrong.empty()) continue;
    const RandomProgram least_one = smallest(program, held);
    std::string text;
    Run(least_one, held).go(&text);
    BOOST_FAIL("seed " << seed << (program.gated ? ", held up: " : ": ") << wrong
                       << "; TENON_FUZZ_SEED=" << seed
                       << " tries it again. The smallest program of " << program.n << " x "
                       << program.n << " matrices that fails:\n"
                       << text);
  }
  BOOST_TEST(!held.rescued(), "somebody waited for a device that was held up");
  BOOST_TEST(busy >= 5u);
}

BOOST_AUTO_TEST_SUITE_END()
