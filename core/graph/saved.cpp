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

bool lies_inside(DType dtype, const Shape& shape, const Strides& strides, int64_t offset,
                 uint64_t all) {
  uint64_t begin = 0;
  return offset >= 0 &&
         !__builtin_mul_overflow(static_cast<uint64_t>(offset), uint64_t{size_of(dtype)}, &begin) &&
         lies_inside(begin, extent_in_memory(dtype, shape, strides), all);
}

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
    place_what_is_empty();
    each_access([&](Access& access, DType dtype, const Shape& shape, const Strides& strides) {
      add(access.value, access.offset, dtype, shape, strides);
    });
    for (auto& r : program_.results)
      if (r.input < 0)
        add(r.value, static_cast<uint64_t>(r.offset) * size_of(r.dtype), r.dtype, r.shape,
            r.strides);
    for (auto& tensor : program_.tensors) cut(tensor, given_to(tensor, names));
    each_access([&](Access& access, DType, const Shape& shape, const Strides&) {
      if (is_tensor(access.value) && shape.numel() != 0) access.offset -= begin_of(access.value);
    });
    for (auto& r : program_.results)
      if (r.input < 0 && is_tensor(r.value) && r.shape.numel() != 0)
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

  // Where a tensor without elements begins says nothing, and may be behind the end of its memory.
  void place_what_is_empty() {
    each_access([&](Access& access, DType, const Shape& shape, const Strides&) {
      if (shape.numel() == 0) access.offset = 0;
    });
    for (auto& r : program_.results)
      if (r.input < 0 && r.shape.numel() == 0) r.offset = 0;
  }

  void add(uint32_t value, uint64_t offset, DType dtype, const Shape& shape,
           const Strides& strides) {
    if (is_tensor(value) && shape.numel() != 0)
      of_[value].push_back(
          {dtype, shape, strides, offset, offset + extent_in_memory(dtype, shape, strides)});
  }

  static bool is_row_major(const Window& w) {
    return w.end - w.begin == static_cast<uint64_t>(w.shape.numel()) * size_of(w.dtype) &&
           is_contiguous(w.shape, w.strides);
  }

  // The tensor that its user has given the name of this one.
  static const Tensor* given_to(const SavedTensor& tensor, const SavedNames& names) {
    for (auto& [name, given] : names.tensors)
      if (given.defined() && impl_of(given).storage == tensor.memory) return &given;
    return nullptr;
  }

  void cut(SavedTensor& tensor, const Tensor* given) {
    auto& windows = of_[tensor.value];
    if (given && given->numel() != 0) {  // what has a name is stored whole
      const TensorImpl& t = impl_of(*given);
      const uint64_t at = static_cast<uint64_t>(t.offset) * size_of(t.dtype);
      windows.push_back(
          {t.dtype, t.shape, t.strides, at, at + extent_in_memory(t.dtype, t.shape, t.strides)});
    }
    uint64_t begin = windows.empty() ? 0 : ~uint64_t{0}, end = 0;
    for (auto& w : windows) begin = std::min(begin, w.begin), end = std::max(end, w.end);
    begin = begin / kAlignment * kAlignment;
    tensor.offset = begin;
    program_.values[tensor.value].bytes = end - begin;
    if (given) return take_form_of(*given, tensor, begin, end);
    const auto whole = std::find_if(windows.rbegin(), windows.rend(), [&](const Window& w) {
      return w.begin == begin && w.end == end && is_row_major(w);
    });
    if (whole != windows.rend()) {
      tensor.dtype = whole->dtype, tensor.shape = whole->shape;
      return;
    }
    const bool one_type =
        !windows.empty() && std::all_of(windows.begin(), windows.end(), [&](const Window& w) {
          return w.dtype == windows[0].dtype && w.dtype != DType::boolean;
        });
    tensor.dtype =
        one_type && (end - begin) % size_of(windows[0].dtype) == 0 ? windows[0].dtype : DType::u8;
    tensor.shape = {static_cast<int64_t>((end - begin) / size_of(tensor.dtype))};
  }

  // A reader of the file takes its values for rows, one after the other.
  static void take_form_of(const Tensor& given, SavedTensor& tensor, uint64_t begin, uint64_t end) {
    const TensorImpl& t = impl_of(given);
    const bool is_empty = given.numel() == 0;
    if (!is_empty && (begin != static_cast<uint64_t>(t.offset) * size_of(t.dtype) ||
                      end - begin != static_cast<uint64_t>(given.numel()) * size_of(t.dtype) ||
                      !given.is_contiguous()))
      throw ValueError(fmt::format(
          "the tensor that is to be called \"{}\" has the shape {} and the strides "
          "{}{}: in a file, which holds memory as the program uses it, its values would "
          "have another order. Leave it out of .tensors, or make it contiguous() before "
          "the function is called",
          excerpt(tensor.name), t.shape, t.strides,
          given.is_contiguous() ? ", in memory of which the program uses more" : ""));
    if (is_empty && end != begin)
      throw ValueError(
          fmt::format("the tensor that is to be called \"{}\" has no elements, and the program "
                      "uses its memory; leave it out of .tensors",
                      excerpt(tensor.name)));
    tensor.dtype = t.dtype, tensor.shape = t.shape;
  }

  SavedProgram& program_;
  std::vector<std::vector<Window>> of_;  // by value
};

}  // namespace

void cut_tensors(SavedProgram& program, const SavedNames& names) { Cut(program).run(names); }

}  // namespace tenon::graph
