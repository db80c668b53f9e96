// Tensors of other libraries, and tensors for them, by DLPack.
#include <cstdint>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/core/dlpack.h>
#include <tenon/core/dlpack_layout.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/shape.h>

#include "support/expect.h"

BOOST_AUTO_TEST_SUITE(dlpack_test)

using namespace tenon;
using test::require_error;

namespace {

using Floats = std::vector<float>;

// A tensor of another library, which counts the calls of its deleter.
template <class Managed>
struct Foreign {
  Floats values{1, 2, 3, 4, 5, 6};
  std::vector<int64_t> shape{2, 3}, strides;
  int deleted = 0;
  Managed managed{};

  Foreign() {
    auto& t = managed.dl_tensor;
    t.data = values.data();
    t.device = {dlpack::kCPU, 0};
    t.dtype = {dlpack::kFloat, 32, 1};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (requires { managed.version; }) managed.version = {1, 0};
  }
  Managed* get() {
    auto& t = managed.dl_tensor;
    t.ndim = static_cast<int32_t>(shape.size());
    t.shape = shape.data();
    t.strides = strides.empty() ? nullptr : strides.data();
    return &managed;
  }
};

template <class Managed>
void require_import() {
  Foreign<Managed> foreign;
  {
    Tensor x = from_dlpack(foreign.get());
    BOOST_CHECK(x.data<float>() == foreign.values.data());
    BOOST_CHECK((x.shape() == Shape{2, 3}));
    x += 1;
    BOOST_TEST(x.t().to_vector<float>() == (Floats{2, 5, 3, 6, 4, 7}));
    BOOST_TEST(foreign.deleted == 0);
  }
  BOOST_TEST(foreign.deleted == 1);
  BOOST_TEST(foreign.values[0] == 2.0f);
}

// What to_dlpack returns is given back, whatever happens.
struct Export {
  DLManagedTensor* managed;
  explicit Export(const Tensor& x) : managed(to_dlpack(x)) {}
  ~Export() { managed->deleter(managed); }
  const DLTensor& tensor() const { return managed->dl_tensor; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(structs_have_the_layout_of_dlpack) {
  static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, byte_offset) == 40);
  static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
  static_assert(sizeof(DLManagedTensorVersioned) == 80 &&
                offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
  BOOST_TEST(sizeof(DLDataType) == 4u);
}

BOOST_AUTO_TEST_CASE(foreign_memory_is_used_where_it_is) {
  require_import<DLManagedTensor>();
  require_import<DLManagedTensorVersioned>();
}

BOOST_AUTO_TEST_CASE(strides_offsets_and_no_elements) {
  Foreign<DLManagedTensor> foreign;
  foreign.shape = {2, 2};
  foreign.strides = {1, 3};
  foreign.managed.dl_tensor.byte_offset = 4;
  BOOST_TEST(from_dlpack(foreign.get()).to_vector<float>() == (Floats{2, 5, 3, 6}));
  BOOST_TEST(foreign.deleted == 1);
  Foreign<DLManagedTensor> none;
  none.shape = {0};
  none.managed.dl_tensor.data = nullptr;
  BOOST_TEST(from_dlpack(none.get()).numel() == 0);
  BOOST_TEST(none.deleted == 1);
  Foreign<DLManagedTensor> scalar;
  scalar.shape = {};
  scalar.managed.deleter = nullptr;  // the memory belongs to somebody who does not want it back
  BOOST_TEST(from_dlpack(scalar.get()).item() == 1);
}

BOOST_AUTO_TEST_CASE(read_only_memory_is_copied) {
  Foreign<DLManagedTensorVersioned> foreign;
  foreign.managed.flags = dlpack::kReadOnly;
  Tensor x = from_dlpack(foreign.get());
  BOOST_TEST(foreign.deleted == 1);
  x += 1;
  BOOST_TEST(x.to_vector<float>()[0] == 2.0f);
  BOOST_TEST(foreign.values[0] == 1.0f);
}

// Whoever passes what is refused keeps it.
BOOST_AUTO_TEST_CASE(what_cannot_be_imported) {
  auto refused = [](auto change, auto... parts) {
    Foreign<DLManagedTensor> foreign;
    change(foreign);
    require_error<Error>([&] { from_dlpack(foreign.get()); }, parts...);
    BOOST_TEST(foreign.deleted == 0);
  };
  refused(
      [](auto& f) {
        f.managed.dl_tensor.device = {2, 1};
      },
      "from_dlpack: the memory is on a device of type 2 (number 1)");
  refused([](auto& f) { f.managed.dl_tensor.dtype = {5, 64, 1}; }, "code 5 with 64 bits");
  refused([](auto& f) { f.managed.dl_tensor.dtype = {dlpack::kInt, 16, 1}; }, "with 16 bits");
  refused([](auto& f) { f.managed.dl_tensor.dtype.lanes = 4; }, "4 lanes");
  refused([](auto& f) { f.strides = {-3, 1}; }, "negative");
  refused([](auto& f) { f.shape = std::vector<int64_t>(9, 1); }, "9");
  refused([](auto& f) { f.managed.dl_tensor.byte_offset = 2; }, "not a multiple of 4");
  refused([](auto& f) { f.managed.dl_tensor.data = nullptr; }, "a null pointer");
  require_error<ValueError>([] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); },
                            "a null pointer is no tensor");
  Foreign<DLManagedTensorVersioned> next;
  next.managed.version = {2, 0};
  require_error<ValueError>([&] { from_dlpack(next.get()); }, "of DLPack 2.0");
  BOOST_TEST(next.deleted == 0);
}

BOOST_AUTO_TEST_CASE(exported_memory_lives_until_it_is_given_back) {
  Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}, {.device = Device()});
  const float* values = x.data<float>();
  auto exported = std::make_unique<Export>(x.t());
  x = Tensor();
  const DLTensor& t = exported->tensor();
  BOOST_CHECK(t.data == values);
  BOOST_TEST(t.device.device_type == dlpack::kCPU);
  BOOST_TEST(t.ndim == 2);
  BOOST_TEST(t.shape[0] == 3);
  BOOST_TEST(t.strides[0] == 1);
  BOOST_TEST(t.strides[1] == 3);
  BOOST_TEST(static_cast<float*>(t.data)[5] == 6.0f);
  exported.reset();
}

BOOST_AUTO_TEST_CASE(every_type_goes_out_and_comes_back) {
  for (DType dtype : {f32, f64, f16, bf16, i64, i32, u8, boolean}) {
    Tensor x = ones({3}, {.dtype = dtype, .device = Device()});
    Tensor back = from_dlpack(to_dlpack(x)), versioned = from_dlpack(to_dlpack_versioned(x));
    for (auto& y : {back, versioned}) {
      BOOST_CHECK(y.dtype() == dtype);
      BOOST_TEST(y.to_vector<float>() == (Floats{1, 1, 1}));
    }
    back.zero_().wait();
    BOOST_TEST(x.to_vector<float>() == (Floats{0, 0, 0}));
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_exported) {
  require_error<AutogradError>(
      [] { to_dlpack(ones({2}, {.device = Device(), .requires_grad = true})); },
      "to_dlpack: the tensor of shape (2,) requires a gradient", "detach()");
  require_error<ValueError>([] { to_dlpack_versioned(Tensor()); }, "to_dlpack_versioned");
  const test::SimFolder sim;
  require_error<DeviceError>([] { to_dlpack(ones({2}, {.device = "sim:0"})); },
                             "to_dlpack: the tensor is on sim:0", ".to(\"cpu\")");
}

BOOST_AUTO_TEST_SUITE_END()
