// The tensor handle: properties of a tensor, and reading its values.
#include <cmath>

#include <fmt/core.h>

#include <tenon/core/autograd/node.h>
#include <tenon/core/base/host_room.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/order.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

bool is_contiguous(const Shape& shape, const Strides& strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

TensorImpl::TensorImpl(DType dtype, Device device, const Shape& shape, const Strides& strides,
                       int64_t offset, Ref<Storage> storage)
    : dtype(dtype),
      device(device),
      contiguous(tenon::is_contiguous(shape, strides)),
      format(suggested_format(shape, strides)),
      shape(shape),
      strides(strides),
      offset(offset),
      numel(shape.numel()),
      storage(std::move(storage)) {}
TensorImpl::~TensorImpl() = default;

void retain(TensorImpl* t) { t->refs.fetch_add(1, std::memory_order_relaxed); }
void release(TensorImpl* t) {
  if (t->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete t;
}

TensorImpl& checked_impl(const Tensor& tensor, const char* what) {
  if (!tensor.defined())
    throw ValueError(fmt::format(
        "{}: the tensor is undefined (default-constructed or moved from){}", what, path_suffix()));
  return *tensor.impl().get();
}

DType Tensor::dtype() const { return checked_impl(*this, "dtype").dtype; }
const Shape& Tensor::shape() const { return checked_impl(*this, "shape").shape; }
const Strides& Tensor::strides() const { return checked_impl(*this, "strides").strides; }
int64_t Tensor::size(int64_t d) const {
  const Shape& shape = checked_impl(*this, "size").shape;
  return shape[wrap_dim(d, static_cast<int64_t>(shape.size()), "size")];
}
int64_t Tensor::dim() const {
  return static_cast<int64_t>(checked_impl(*this, "dim").shape.size());
}
int64_t Tensor::numel() const { return checked_impl(*this, "numel").numel; }
Device Tensor::device() const { return checked_impl(*this, "device").device; }
bool Tensor::is_contiguous(MemoryFormat format) const {
  const TensorImpl& t = checked_impl(*this, "is_contiguous");
  if (format == preserve_format)
    throw ValueError("is_contiguous: preserve_format is no format of a tensor; ask for another");
  return moves_channels(format) ? has_format(t.shape, t.strides, format) : t.contiguous;
}
MemoryFormat Tensor::suggest_memory_format() const {
  return checked_impl(*this, "suggest_memory_format").format;
}
uint64_t Tensor::version() const {
  return checked_impl(*this, "version").storage->version.load(std::memory_order_acquire);
}

const Tensor& Tensor::wait() const {
  auto& t = checked_impl(*this, "wait");
  const uint64_t ticket = t.storage->write_ticket.load(std::memory_order_acquire);
  auto& stream = writer_of(*t.storage, ticket);
  stream.wait_and_watch(ticket);
  if (stream.failures.any() || stream.failures.may_be_told(ticket))
    stream.wait_for_value(ticket, t.data(), Footprint(t.shape, t.strides, size_of(t.dtype)));
  return *this;
}

bool Tensor::is_ready() const { return has_values(*checked_impl(*this, "is_ready").storage); }

namespace {

// Writes the values to `destination`, converted to `dtype`, in row-major order.
void read_values(const Tensor& tensor, DType dtype, void* destination) {
  NoGrad guard;
  read_to_host(tensor.to(dtype).contiguous(), destination);
}

template <class T>
T read_single(const Tensor& tensor) {
  T value;
  read_values(tensor, DTypeOf<T>::value, &value);
  return value;
}

void require_single(const Tensor& x) {
  auto& t = checked_impl(x, "item");
  if (t.numel != 1)
    throw ValueError(
        fmt::format("item: the tensor has {} elements (shape {}), but item() reads exactly one; "
                    "use to_vector() or select an element",
                    t.numel, t.shape));
}

double read_floating(const Tensor& x) {
  return x.dtype() == f64 ? read_single<double>(x) : double{read_single<float>(x)};
}

// Throws the ValueError for a value that does not lie between `low` and `high`.
[[noreturn]] void refuse_value(const Tensor& x, const std::string& value, const std::string& low,
                               const std::string& high) {
  throw ValueError(
      fmt::format("item: the {} value {} cannot be converted to the type that was asked for, which "
                  "holds numbers from {} to {}; read it as a wider one, such as item<double>()",
                  x.dtype(), value, low, high));
}

}  // namespace

bool Tensor::item_bool() const {
  require_single(*this);
  uint8_t truth;
  read_values(*this, DType::boolean, &truth);
  return truth != 0;
}

double Tensor::item_floating(long double largest) const {
  require_single(*this);
  if (!is_floating_point(dtype())) return static_cast<double>(read_single<int64_t>(*this));
  const double value = read_floating(*this);
  if (std::isfinite(value) && std::abs(value) > largest)
    refuse_value(*this, number_text(value), number_text(static_cast<double>(-largest)),
                 number_text(static_cast<double>(largest)));
  return value;
}

uint64_t Tensor::item_integer(int64_t lowest, uint64_t largest) const {
  require_single(*this);
  auto refuse = [&](const std::string& value) {
    refuse_value(*this, value, std::to_string(lowest), std::to_string(largest));
  };
  if (!is_floating_point(dtype())) {
    const auto value = read_single<int64_t>(*this);
    if (value < lowest || (value > 0 && static_cast<uint64_t>(value) > largest))
      refuse(std::to_string(value));
    return static_cast<uint64_t>(value);
  }
  // `lowest` and `largest` + 1 are powers of two or 0, which doubles hold.
  const double value = read_floating(*this), whole = std::trunc(value);
  if (!(whole >= static_cast<double>(lowest) && whole < static_cast<double>(largest) + 1))
    refuse(number_text(value));
  return whole < 0 ? static_cast<uint64_t>(static_cast<int64_t>(whole))
                   : static_cast<uint64_t>(whole);
}

// Declared in tenon/eigen.h, the only place that reads tensors which are not contiguous.
namespace detail {
TENON_API const void* strided_data(const Tensor& x, const char* caller, DType expected) {
  recording::reads(caller);
  auto& t = checked_impl(x, caller);
  if (t.dtype != expected)
    throw DTypeError(fmt::format("{}: the tensor holds {}, but was read as {}; {}", caller, t.dtype,
                                 expected, conversion_to(expected)));
  if (!t.storage->context->host_visible)
    throw DeviceError(fmt::format(
        "{}: the tensor is on {}, which the host cannot read; move it with .to(\"cpu\")", caller,
        t.device));
  x.wait();
  return t.data();
}
}  // namespace detail

const void* Tensor::host_data(DType expected) const {
  const void* values = detail::strided_data(*this, "data", expected);
  if (!is_contiguous())
    throw ValueError(fmt::format(
        "data: the tensor of shape {} is not contiguous; call .contiguous() first", shape()));
  return values;
}

void Tensor::copy_to_host(void* destination, DType as) const {
  checked_impl(*this, "copy_to_host");
  read_values(*this, as, destination);
}

void Tensor::require_room_on_host(size_t bytes_per_element) const {
  if (!host_has_room(static_cast<uint64_t>(checked_impl(*this, "to_vector").numel),
                     bytes_per_element))
    refuse_copy_to_host(bytes_per_element);
}

void Tensor::refuse_copy_to_host(size_t bytes_per_element) const {
  refuse_host_room(static_cast<uint64_t>(numel()), bytes_per_element,
                   fmt::format("to_vector: a copy on the host of all {} elements of a tensor of "
                               "shape {} and type {} is too large: ",
                               numel(), shape(), dtype()));
}

void set_data(const Tensor& handle, const Tensor& values) {
  auto &t = checked_impl(handle, "set_data"), &v = checked_impl(values, "set_data");
  recording::refuse("a parameter or buffer is replaced");
  recording::changed();
  if (t.autograd && t.autograd->replicas) handle.grad();  // adds what other devices have kept
  t.dtype = v.dtype;
  t.device = v.device;
  t.contiguous = v.contiguous;
  t.format = v.format;
  t.shape = v.shape;
  t.strides = v.strides;
  t.offset = v.offset;
  t.numel = v.numel;
  t.storage = v.storage;
  if (t.autograd && t.autograd->grad.defined())
    t.autograd->grad = no_grad([&] {
      const Tensor grad = t.autograd->grad.to(v.device).to(v.dtype);
      return v.shape == grad.shape() ? grad.to(v.format) : grad;
    });
  if (t.autograd && t.autograd->replicas) t.autograd->replicas = std::make_shared<ReplicaSet>();
}

}  // namespace tenon
