#include <fmt/core.h>

#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>

namespace tenon {

namespace {
const Op*& list_head() {
  static const Op* head = nullptr;
  return head;
}
}  // namespace

Op::Op(const OpSpec& spec) : OpSpec(spec), next(list_head()) { list_head() = this; }
const Op* all_ops() { return list_head(); }

bool is_of_library(const Op& op) {
  for (const Op* own = all_ops(); own; own = own->next)
    if (own == &op) return true;
  return false;
}

std::string input_name(const Op& op, size_t i, size_t count) {
  std::string_view names = op.inputs ? op.inputs : count == 1 ? "x" : "";
  for (size_t k = 0; k < i && !names.empty(); ++k) {
    const size_t blank = names.find(' ');
    names = blank == names.npos ? "" : names.substr(blank + 1);
  }
  return names.empty() ? fmt::format("argument {}", i)
                       : std::string(names.substr(0, names.find(' ')));
}

std::string conversion_to(DType dtype, const char* what) {
  return fmt::format("convert {} with .to(tenon::{})", what,
                     dtype == DType::boolean ? "boolean" : name_of(dtype));
}

const Shape& Infer::given_shape() const {
  if (!call_.shape)
    throw Error(fmt::format("{}: it was called without the shape of its output", op.name));
  return *call_.shape;
}

void Infer::refuse_input(size_t i) const {
  throw Error(fmt::format("{}: it was called without its input {}", op.name, i));
}

void require_scalars(const CallDesc& call) {
  const Op& op = *call.op;
  size_t wanted = op.count_scalars ? op.count_scalars(call.attrs) : op.scalars;
  if (op.number_for >= 0) {
    const auto input = static_cast<size_t>(op.number_for);
    wanted += input >= call.inputs.size() || !call.inputs[input];
  }
  if (call.num_scalars != wanted)
    throw Error(
        fmt::format("{}: it takes {} scalars here, found {}", op.name, wanted, call.num_scalars));
}

void Infer::output_in_place(size_t i) {
  outputs.push_back({in(i).dtype, in(i).shape, OutputKind::in_place, static_cast<uint32_t>(i)});
}

void Infer::require_dtype(bool ok, size_t i, const char* wanted, DType remedy) const {
  if (!ok)
    throw DTypeError(fmt::format("{}: {} has dtype {}, but must be {}; {}{}", op.name,
                                 input_name(op, i, size()), in(i).dtype, wanted,
                                 conversion_to(remedy), path_suffix()));
}

void Infer::shape_error(const std::string& message) const {
  throw ShapeError(fmt::format("{}: {}{}", op.name, message, path_suffix()));
}

}  // namespace tenon
