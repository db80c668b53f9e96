// Requests to a plugin, put together piece by piece.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/sdk.h>

#include "support/expect.h"

namespace tenon::test {

using sdk::Request;

inline tn_tensor_desc tensor(std::initializer_list<int64_t> shape, tn_dtype dtype = TN_F32) {
  tn_tensor_desc d{sizeof(d), dtype, static_cast<uint32_t>(shape.size()), {}, {}};
  std::copy(shape.begin(), shape.end(), d.shape);
  int64_t stride = 1;
  for (uint32_t k = d.rank; k-- > 0; stride *= d.shape[k]) d.strides[k] = stride;
  return d;
}
// The same tensor read column by column.
inline tn_tensor_desc transposed(tn_tensor_desc d) {
  std::swap(d.shape[0], d.shape[1]);
  std::swap(d.strides[0], d.strides[1]);
  return d;
}

class Ask {
 public:
  explicit Ask(const char* op) : op_(op) {}
  Ask& in(const tn_tensor_desc& d) { return inputs_.emplace_back(d), *this; }
  Ask& out(const tn_tensor_desc& d) { return outputs_.emplace_back(d), *this; }
  Ask& no_in() { return inputs_.emplace_back(), *this; }
  Ask& no_out() { return outputs_.emplace_back(), *this; }
  // An output that is this input, changed in place.
  Ask& out_at(size_t input) {
    aliases_.resize(outputs_.size(), -1);
    aliases_.push_back(static_cast<int32_t>(input));
    return outputs_.push_back(inputs_[input]), *this;
  }
  Ask& scalars(size_t n) { return scalars_ = n, *this; }
  Ask& set(const char* name, int64_t value) { return attr(name, TN_ATTR_INT).i = value, *this; }
  Ask& flag(const char* name, bool value) { return attr(name, TN_ATTR_BOOL).i = value, *this; }
  Ask& number(const char* name, double value) { return attr(name, TN_ATTR_FLOAT).f = value, *this; }
  Ask& text(const char* name, const char* value) {
    return attr(name, TN_ATTR_STRING).s = value, *this;
  }
  Ask& pair(const char* name, int64_t a, int64_t b) { return ints(name, {a, b}); }
  Ask& ints(const char* name, std::vector<int64_t> values) {
    attr(name, TN_ATTR_INTS).num_ints = values.size();
    attrs_.back().ints = std::move(values);
    return *this;
  }

  template <class F>
  auto read(F&& from) const {
    const Kept kept(*this);
    return from(Request(kept.raw));
  }
  // `from` refuses the request with the code and this in its text, which names the operator
  // nowhere.
  template <class F>
  void refused(F&& from, const char* part, tn_code code = TN_CODE_INVALID_ARGUMENT) const {
    std::string found = "nothing was thrown";
    tn_code with = TN_CODE_INTERNAL;
    try {
      read(from);
    } catch (const sdk::Error& e) {
      found = e.what();
      with = e.code();
    }
    check_refusal(found, part, with, code);
  }

 private:
  using Tensors = std::vector<std::optional<tn_tensor_desc>>;
  struct Attribute {
    tn_attr attr;
    std::vector<int64_t> ints;
  };
  static std::vector<const tn_tensor_desc*> pointers(const Tensors& tensors) {
    std::vector<const tn_tensor_desc*> all;
    for (auto& d : tensors) all.push_back(d ? &*d : nullptr);
    return all;
  }
  // The request in the form of the joint, and what it points to.
  struct Kept {
    explicit Kept(const Ask& ask)
        : inputs(pointers(ask.inputs_)), outputs(pointers(ask.outputs_)), all(ask.attrs_) {
      for (auto& a : all) {
        a.attr.ints = a.ints.data();
        attrs.push_back(&a.attr);
      }
      raw = {sizeof(raw),
             ask.op_,
             inputs.size(),
             inputs.data(),
             outputs.size(),
             outputs.data(),
             ask.aliases_.empty() ? nullptr : ask.aliases_.data(),
             attrs.size(),
             attrs.data(),
             ask.scalars_};
    }
    std::vector<const tn_tensor_desc*> inputs, outputs;
    std::vector<Attribute> all;
    std::vector<const tn_attr*> attrs;
    tn_op_request raw;
  };
  void check_refusal(const std::string& found, const char* part, tn_code with, tn_code code) const {
    BOOST_TEST(with == code, found);
    BOOST_TEST(has(found, part), found << "\ndoes not hold \"" << part << "\"");
    BOOST_TEST(!has(found, op_), found);
  }
  tn_attr& attr(const char* name, tn_attr_kind kind) {
    return attrs_.push_back({{sizeof(tn_attr), name, kind, 0, 0, nullptr, 0, nullptr}, {}}),
           attrs_.back().attr;
  }
  const char* op_;
  Tensors inputs_, outputs_;
  std::vector<Attribute> attrs_;
  std::vector<int32_t> aliases_;
  size_t scalars_ = 0;
};

}  // namespace tenon::test
