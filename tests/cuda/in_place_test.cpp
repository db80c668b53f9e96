// Operators whose result lies in the memory of an operand: arithmetic in place, as the operators'
// contract allows, asked of the cuda and of the cpu plugin alike; and copies of a tensor into
// itself.
#include <span>

#include "cuda/bare.h"
#include "cuda/compare.h"

using namespace tenon;
using namespace tenon::test;
BOOST_TEST_GLOBAL_FIXTURE(EmulatedCuda);

namespace {

// How a tensor of this shape lies in memory when it lies in some way.
struct Operand {
  tn_tensor_desc desc{};
  uint64_t offset = 0;  // of its first element, in elements
};
Operand operand(const Layout& layout, const Shape& shape, DType dtype) {
  const Shape whole = layout.whole(shape);
  const Tensor x =
      layout.view(arange(0, static_cast<double>(whole.numel()), 1, {.dtype = i64}).view(whole),
                  shape);  // the values are their own places
  Operand o;
  o.desc.struct_size = sizeof o.desc;
  o.desc.dtype = static_cast<tn_dtype>(dtype);
  o.desc.rank = static_cast<uint32_t>(x.dim());
  for (int64_t d = 0; d < x.dim(); ++d) {
    o.desc.shape[d] = x.size(d);
    o.desc.strides[d] = x.strides()[static_cast<size_t>(d)];
  }
  o.offset = static_cast<uint64_t>(x.to_vector<int64_t>()[0]);
  return o;
}

enum class Second { other, number, itself };

// a's memory after `a = op(a, b)`, all of it: what lies between a's elements has to stay as it is.
template <class T>
std::vector<T> in_place(const char* plugin, const char* op, const std::vector<T>& whole_a,
                        const Operand& a, const std::vector<T>& whole_b, const Operand& b,
                        Second second) {
  Bare device(plugin);
  T *base_a = device.put(whole_a), *base_b = device.put(whole_b);
  tn_attr reverse{};
  reverse.struct_size = sizeof reverse;
  reverse.name = "reverse";
  reverse.kind = TN_ATTR_BOOL;
  const tn_tensor_desc* inputs[] = {&a.desc, second == Second::number   ? nullptr
                                             : second == Second::itself ? &a.desc
                                                                        : &b.desc};
  const tn_tensor_desc* outputs[] = {&a.desc};
  const int32_t aliases[] = {0};
  const tn_attr* attrs[] = {&reverse};
  tn_op_request request{sizeof request, op,      2, inputs, 1,
                        outputs,        aliases, 1, attrs,  second == Second::number ? 1u : 0u};
  tn_scalar number{};
  if constexpr (std::is_floating_point_v<T>)
    number.f = 2.5;
  else
    number.i = 3;
  void* at = base_a + a.offset;
  void* in[] = {at, second == Second::number   ? nullptr
                    : second == Second::itself ? at
                                               : base_b + b.offset};
  tn_plan* plan = nullptr;
  ok(device.api.plan_create(device.device, &request, &plan));
  BOOST_REQUIRE(plan->workspace_bytes == 0u);
  const tn_run args{sizeof args,         in,     &at, &number, nullptr, device.stream, 2, 1,
                    request.num_scalars, nullptr};
  ok(plan->run(plan, &args));
  device.wait();
  plan->destroy(plan);
  return device.get(base_a, whole_a.size());
}

template <class T>
void compare_in_place(DType dtype, const std::vector<const char*>& ops) {
  const auto all = layouts();
  for (const Shape& shape :
       {Shape{7}, Shape{2048}, Shape{5, 1000}, Shape{64, 64}, Shape{96, 40}, Shape{3, 33, 65}})
    for (auto& first : std::span(all).first(2))  // results are contiguous, wherever they begin
      for (auto& other : all)
        for (const char* op : ops) {
          const auto a = operand(first, shape, dtype), b = operand(other, shape, dtype);
          const Tensor whole_a = random_values(first.whole(shape), dtype),
                       whole_b = random_values(other.whole(shape), dtype);
          const auto values_a = whole_a.to_vector<T>(), values_b = whole_b.to_vector<T>();
          for (Second s : {Second::other, pick(0, 1) ? Second::number : Second::itself}) {
            const auto found = in_place<T>("cuda", op, values_a, a, values_b, b, s),
                       expected = in_place<T>("cpu", op, values_a, a, values_b, b, s);
            for (size_t i = 0; i < expected.size(); ++i)
              if (!is_close(static_cast<double>(found[i]), static_cast<double>(expected[i]), 0, 0))
                BOOST_FAIL(describe(op, dtype, shape,
                                    std::string(first.name) + " in place, with " + other.name)
                           << ": element " << i << " of its memory is " << found[i] << ", expected "
                           << expected[i]);
          }
        }
}

}  // namespace

BOOST_AUTO_TEST_CASE(arithmetic_in_place) {
  compare_in_place<float>(f32, {"add", "sub", "mul", "div"});
  compare_in_place<double>(f64, {"sub", "div"});
  compare_in_place<int64_t>(i64, {"add", "sub", "mul"});
}

// The source is read as it was before, however the two lie in each other.
BOOST_AUTO_TEST_CASE(copies_of_a_tensor_into_itself) {
  struct Case {
    const char* name;
    Shape shape;
    std::function<void(Tensor&)> change;
  };
  const std::vector<Case> cases = {
      {"itself", {50, 50}, [](Tensor& x) { x.copy_(x); }},
      {"transposed", {70, 70}, [](Tensor& x) { x.copy_(x.t()); }},
      {"into its transpose", {70, 70}, [](Tensor& x) { x.t().copy_(x); }},
      {"a batch of transposed", {3, 40, 40}, [](Tensor& x) { x.copy_(x.transpose(1, 2)); }},
      {"one further", {5001}, [](Tensor& x) { x.narrow(0, 1, 5000).copy_(x.narrow(0, 0, 5000)); }},
      {"one back", {5001}, [](Tensor& x) { x.narrow(0, 0, 5000).copy_(x.narrow(0, 1, 5000)); }},
      {"rows further", {90, 33}, [](Tensor& x) { x.narrow(0, 7, 83).copy_(x.narrow(0, 0, 83)); }},
      {"columns back", {90, 33}, [](Tensor& x) { x.narrow(1, 0, 30).copy_(x.narrow(1, 3, 30)); }},
      {"a row into all", {40, 64}, [](Tensor& x) { x.copy_(x.narrow(0, 3, 1)); }},
      {"a column into all", {40, 64}, [](Tensor& x) { x.copy_(x.narrow(1, 5, 1)); }},
      {"every second into the first half",
       {2000},
       [](Tensor& x) { x.narrow(0, 0, 1000).copy_(x.slice(0, 0, 2000, 2)); }},
      {"the sum with its transpose", {64, 64}, [](Tensor& x) { x.copy_(x + x.t()); }},
      {"less its transpose", {64, 64}, [](Tensor& x) { x.t().copy_(x - x.t()); }},
      {"times a view of itself",
       {64, 64},
       [](Tensor& x) { x.view({4096}).copy_(x.view({4096}) * x.reshape({4096})); }},
  };
  for (DType dtype : {f32, f64, bf16, i64, u8})
    for (auto& c : cases) {
      Tensor here = random_values(c.shape, dtype), there = here.to(kGpu);
      c.change(here);
      c.change(there);
      require_same(there, here, describe("copy_", dtype, c.shape, c.name), 0);
    }
}
