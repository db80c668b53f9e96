// The onednn overlay beside the cpu plugin: requests to both, made and run with their tables alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "desc.h"
#include "plugin_folder.h"

namespace tenon::test::overlaid {

struct Attr {
  Attr(const char* n, int64_t value) : name(n), kind(TN_ATTR_INT), number(value) {}
  Attr(const char* n, bool value) : name(n), kind(TN_ATTR_BOOL), number(value) {}
  Attr(const char* n, int value) : Attr(n, int64_t{value}) {}
  Attr(const char* n, const char* value) : name(n), kind(TN_ATTR_STRING), text(value) {}
  Attr(const char* n, Dims values) : name(n), kind(TN_ATTR_INTS), numbers(std::move(values)) {}
  tn_attr raw() const {
    return {sizeof(tn_attr), name, kind, number, 0, text, numbers.size(), numbers.data()};
  }
  const char* name;
  tn_attr_kind kind;
  int64_t number = 0;
  const char* text = nullptr;
  Dims numbers;
};

using Values = std::vector<float>;

// Numbers of which bf16 keeps all digits, so that both plugins get the same ones.
inline float rounded(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}
inline std::vector<char> bytes_of(const Values& values, tn_dtype dtype) {
  const bool half = dtype == TN_BF16;
  std::vector<char> bytes(values.size() * (half ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(&bytes[i * (half ? 2 : 4)],
                reinterpret_cast<const char*>(&values[i]) + (half ? 2 : 0), half ? 2 : 4);
  return bytes;
}
inline Values values_of(const std::vector<char>& bytes, tn_dtype dtype) {
  const bool half = dtype == TN_BF16;
  Values values(bytes.size() / (half ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(reinterpret_cast<char*>(&values[i]) + (half ? 2 : 0), &bytes[i * (half ? 2 : 4)],
                half ? 2 : 4);
  return values;
}

struct Case {
  const char* op;
  std::vector<std::optional<Desc>> inputs;
  Desc output;
  std::vector<Attr> attrs = {};
};

// A plan and memory for its runs, which starts as NaN in each of them.
class Planned {
 public:
  Planned(tn_plan* plan, const Case& c, tn_dtype dtype)
      : plan_(plan),
        dtype_(dtype),
        result_(c.output.extent() * (dtype == TN_BF16 ? 2 : 4)),
        workspace_(plan->workspace_bytes + 64) {}
  Planned(Planned&& o) noexcept
      : plan_(std::exchange(o.plan_, nullptr)),
        dtype_(o.dtype_),
        result_(std::move(o.result_)),
        workspace_(std::move(o.workspace_)) {}
  ~Planned() {
    if (plan_) plan_->destroy(plan_);
  }

  const tn_plan& plan() const { return *plan_; }
  Values run(const std::vector<void*>& inputs, const std::vector<uint64_t>& versions = {}) {
    std::memset(result_.data(), 0xff, result_.size());
    std::memset(workspace_.data(), 0xff, workspace_.size());
    auto* aligned =
        reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(workspace_.data()) + 63) / 64 * 64);
    void* results[] = {result_.data()};
    tn_run args{
        sizeof args, inputs.data(), results, nullptr, aligned,
        nullptr,     inputs.size(), 1,       0,       versions.empty() ? nullptr : versions.data()};
    tn_error* failed = plan_->run(plan_, &args);
    BOOST_REQUIRE_MESSAGE(!failed, (failed ? failed->message : ""));
    return values_of(result_, dtype_);
  }

 private:
  tn_plan* plan_;
  tn_dtype dtype_;
  std::vector<char> result_, workspace_;
};

// A plugin and its device cpu:0.
struct Planner {
  plugins::Backend* backend = nullptr;
  tn_device* device = nullptr;

  // The plan for a request, or nothing and the reason of a refusal.
  std::optional<Planned> plan(const Case& c, tn_dtype dtype, std::string* reason = nullptr) const {
    std::vector<Desc> descs;
    descs.reserve(c.inputs.size());
    std::vector<const tn_tensor_desc*> inputs;
    for (auto& d : c.inputs) {
      if (d) descs.push_back(d->as(dtype));
      inputs.push_back(d ? &descs.back() : nullptr);
    }
    const Desc output = c.output.as(dtype);
    const tn_tensor_desc* outputs[] = {&output};
    std::vector<tn_attr> raw;
    for (auto& a : c.attrs) raw.push_back(a.raw());
    std::vector<const tn_attr*> attrs;
    for (auto& a : raw) attrs.push_back(&a);
    tn_op_request request{sizeof request, c.op,    inputs.size(), inputs.data(), 1,
                          outputs,        nullptr, attrs.size(),  attrs.data(),  0};
    tn_plan* plan = nullptr;
    if (tn_error* error = backend->api().plan_create(device, &request, &plan)) {
      const std::string text = plugins::take_message(error);
      if (reason) *reason = text;
      return std::nullopt;
    }
    return Planned(plan, c, dtype);
  }

  // What a run of the request gives, or nothing and the reason of a refusal.
  std::optional<Values> run(const Case& c, tn_dtype dtype, const std::vector<Values>& values,
                            std::string* reason = nullptr) const {
    auto planned = plan(c, dtype, reason);
    if (!planned) return std::nullopt;
    std::vector<std::vector<char>> data;
    std::vector<void*> pointers;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      data.push_back(bytes_of(values[i], dtype));
      pointers.push_back(c.inputs[i] ? data.back().data() : nullptr);
    }
    return planned->run(pointers);
  }
};

struct Overlaid {
  Overlaid() {
    empty({1});  // the host has its threads
    base.backend = &registry.load("cpu");
    base.device = base.backend->open_device(0);
    for (auto* overlay : registry.overlays("cpu"))
      if (overlay->name() == "onednn") this->overlay = {overlay, overlay->open_device(0)};
  }
  plugins::Registry registry{{.paths = {build_dir() + "/lib/tenon/plugins"},
                              .environment = false,
                              .install_folder = false}};
  Planner base, overlay;
};
inline Overlaid& both() {
  static auto& once = *new Overlaid;
  return once;
}

// A build without oneDNN has no overlay to try.
inline boost::test_tools::assertion_result is_built(boost::unit_test::test_unit_id) {
  return both().overlay.backend != nullptr;
}
inline auto where_built() { return boost::unit_test::precondition(is_built); }

inline std::mt19937 generator(7);
inline int64_t draw(int64_t least, int64_t most) {
  return std::uniform_int_distribution<int64_t>(least, most)(generator);
}
inline Values random_values(size_t count) {
  Values values(count);
  for (auto& v : values) v = rounded(std::uniform_real_distribution<float>(-1, 1)(generator));
  return values;
}

}  // namespace tenon::test::overlaid
