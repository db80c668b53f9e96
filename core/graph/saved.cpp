#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/describe.h>
#include <tenon/core/graph/saved.h>

namespace tenon::graph {

uint64_t extent_in_memory(DType dtype, const Shape& shape, const Strides& strides) {
  if (!is_addressable(shape))
    throw ValueError(fmt::format("the shape {} is one that no tensor has", shape));
  if (strides.size() != shape.size())
    throw ValueError(fmt::format("strides {} do not fit the shape {}", strides, shape));
  uint64_t last = 0;
  bool empty = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    uint64_t step = 0;
    empty |= shape[d] == 0;
    if (strides[d] < 0 || strides[d] > kMaxNumel ||
        __builtin_mul_overflow(static_cast<uint64_t>(std::max<int64_t>(shape[d] - 1, 0)),
                               static_cast<uint64_t>(strides[d]), &step) ||
        __builtin_add_overflow(last, step, &last) || last >= static_cast<uint64_t>(kMaxNumel))
      throw ValueError(fmt::format("strides {} of shape {} lead out of memory", strides, shape));
  }
  return empty ? 0 : (last + 1) * size_of(dtype);
}

std::string fault_of_names(const SavedProgram& program) {
  std::string fault;
  const auto check_text = [&](const std::string& name, const char* what) {
    if (name.size() > kLongestName || name.find('\0') != name.npos)
      fault = fmt::format("the name \"{}\" of one of its {} has more than {} bytes, or a zero byte",
                          excerpt(name), what, kLongestName);
    else if (!is_utf8(name))
      fault = fmt::format("the name \"{}\" of one of its {} is not UTF-8", excerpt(name), what);
  };
  const auto check = [&](const auto& items, const char* what) {
    std::set<std::string_view> taken;
    for (auto& item : items) {
      check_text(item.name, what);
      if (!taken.insert(item.name).second)
        fault = fmt::format("two {} have the name \"{}\"", what, excerpt(item.name));
    }
  };
  check(program.inputs, "inputs");
  check(program.tensors, "tensors");
  check(program.results, "outputs");
  check(program.numbers, "numbers");
  for (auto& node : program.nodes) check_text(node.path, "modules");
  return fault;
}

namespace {

// A tensor over the memory of another.
struct Window {
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;
  uint64_t begin = 0, end = 0;  // in bytes
};

class Cut {
 public:
  explicit Cut(SavedProgram& program) : program_(program), of_(program.values.size()) {}

  void run(const SavedNames& names) {
    each_access([&](Access& access, DType dtype, const Shape& shape, const Strides& strides) {
      add(access.value, access.offset, dtype, shape, strides);
    });
    for (auto& r : program_.results)
      if (r.input < 0)
        add(r.value, static_cast<uint64_t>(r.offset) * size_of(r.dtype), r.dtype, r.shape,
            r.strides);
    for (auto& tensor : program_.tensors) cut(tensor, names);
    each_access([&](Access& access, DType, const Shape&, const Strides&) {
      if (is_tensor(access.value)) access.offset -= begin_of(access.value);
    });
    for (auto& r : program_.results)
      if (r.input < 0 && is_tensor(r.value))
        r.offset -= static_cast<int64_t>(begin_of(r.value) / size_of(r.dtype));
  }

 private:
  // Plugins may rely on it, and it is a multiple of the size of every element.
  static constexpr uint64_t kAlignment = 64;

  bool is_tensor(uint32_t value) const { return program_.values[value].kind == SavedKind::tensor; }
  uint64_t begin_of(uint32_t value) const {
    return program_.tensors[program_.values[value].index].offset;
  }

  template <class F>
  void each_access(F&& f) {
    for (auto& node : program_.nodes)
      for (size_t i = 0; i < node.accesses.size(); ++i) {
        const size_t inputs = node.call.inputs.size();
        if (node.accesses[i].value == kAbsent) continue;
        if (i < inputs) {
          const TensorDesc& t = *node.call.inputs[i];
          f(node.accesses[i], t.dtype, t.shape, t.strides);
        } else {
          const SavedOutput& o = node.outputs[i - inputs];
          f(node.accesses[i], o.dtype, o.shape, o.strides);
        }
      }
  }

  void add(uint32_t value, uint64_t offset, DType dtype, const Shape& shape,
           const Strides& strides) {
    if (is_tensor(value))
      of_[value].push_back(
          {dtype, shape, strides, offset, offset + extent_in_memory(dtype, shape, strides)});
  }

  static bool is_row_major(const Window& w) {
    return w.end - w.begin == static_cast<uint64_t>(w.shape.numel()) * size_of(w.dtype) &&
           is_contiguous(w.shape, w.strides);
  }

  void cut(SavedTensor& tensor, const SavedNames& names) {
    auto& windows = of_[tensor.value];
    // What has a name is stored whole.
    for (auto& [name, given] : names.tensors)
      if (given.defined() && impl_of(given).storage == tensor.memory) {
        const TensorImpl& t = impl_of(given);
        const uint64_t at = static_cast<uint64_t>(t.offset) * size_of(t.dtype);
        windows.push_back(
            {t.dtype, t.shape, t.strides, at, at + extent_in_memory(t.dtype, t.shape, t.strides)});
      }
    uint64_t begin = ~uint64_t{0}, end = 0;
    for (auto& w : windows) begin = std::min(begin, w.begin), end = std::max(end, w.end);
    begin = begin / kAlignment * kAlignment;
    end = std::max(begin, end);
    tensor.offset = begin;
    program_.values[tensor.value].bytes = end - begin;
    const auto whole = std::find_if(windows.rbegin(), windows.rend(), [&](const Window& w) {
      return w.begin == begin && w.end == end && is_row_major(w);
    });
    if (whole != windows.rend()) {
      tensor.dtype = whole->dtype, tensor.shape = whole->shape;
      return;
    }
    const bool one_type = std::all_of(windows.begin(), windows.end(), [&](const Window& w) {
      return w.dtype == windows[0].dtype && w.dtype != DType::boolean;
    });
    tensor.dtype =
        one_type && (end - begin) % size_of(windows[0].dtype) == 0 ? windows[0].dtype : DType::u8;
    tensor.shape = {static_cast<int64_t>((end - begin) / size_of(tensor.dtype))};
  }

  SavedProgram& program_;
  std::vector<std::vector<Window>> of_;  // by value
};

}  // namespace

void cut_tensors(SavedProgram& program, const SavedNames& names) { Cut(program).run(names); }

}  // namespace tenon::graph
