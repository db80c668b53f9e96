// Products and convolutions through Tenon, and the same work by oneDNN called directly on as many
// threads of its own: on memory in the layouts that it likes best, without copies to them, and for
// convolutions also on row-major tensors like those of a program that holds no others.
// bench/compare_onednn.py prints all of them beside Tenon without the overlay.
#include <functional>
#include <map>

#include <oneapi/dnnl/dnnl.hpp>

#include "subject.h"

using namespace tenon;

namespace {

using Tag = dnnl::memory::format_tag;
constexpr auto kF32 = dnnl::memory::data_type::f32;

// What a primitive of a convolution writes.
bool is_output(int name) {
  return name == DNNL_ARG_DST || name == DNNL_ARG_DIFF_SRC || name == DNNL_ARG_DIFF_WEIGHTS;
}

dnnl::engine& engine() {
  static dnnl::engine the_engine(dnnl::engine::kind::cpu, 0);
  return the_engine;
}

dnnl::memory filled_memory(const dnnl::memory::desc& desc) {
  dnnl::memory memory(desc, engine());
  auto* values = static_cast<float*>(memory.get_data_handle());
  for (size_t i = 0; i < memory.get_desc().get_size() / sizeof(float); ++i)
    values[i] = static_cast<float>(i % 7) - 3;
  return memory;
}

// Runs `primitive` so many times on memory of its own, filled with small numbers.
template <class PrimitiveDesc>
std::function<void()> direct(const PrimitiveDesc& pd, std::initializer_list<int> names,
                             int calls = 1) {
  std::unordered_map<int, dnnl::memory> arguments;
  for (int name : names)
    arguments.emplace(name, filled_memory(pd.query_md(dnnl::query::exec_arg_md, name)));
  dnnl::primitive primitive(pd);
  dnnl::stream stream(engine());
  return [=]() mutable {
    for (int i = 0; i < calls; ++i) primitive.execute(stream, arguments);
    stream.wait();
  };
}

// Runs the primitive of a convolution on row-major tensors, which are reordered for it in each run;
// the weight it reads is reordered once.
template <class PrimitiveDesc>
std::function<void()> on_rows(const PrimitiveDesc& pd, std::initializer_list<int> names) {
  struct Reorder {
    dnnl::memory from, to;
    dnnl::reorder primitive{from, to};
  };
  std::unordered_map<int, dnnl::memory> arguments;
  std::vector<Reorder> before, after;
  dnnl::stream stream(engine());
  for (int name : names) {
    const auto liked = pd.query_md(dnnl::query::exec_arg_md, name);
    const dnnl::memory rows = filled_memory({liked.dims(), kF32, Tag::abcd});
    const bool as_it_is = rows.get_desc() == liked;
    const dnnl::memory used = as_it_is ? rows : filled_memory(liked);
    arguments.emplace(name, used);
    if (as_it_is) continue;
    if (is_output(name))
      after.push_back({used, rows});
    else if (name != DNNL_ARG_WEIGHTS)
      before.push_back({rows, used});
  }
  dnnl::primitive primitive(pd);
  return [=]() mutable {
    for (auto& r : before) r.primitive.execute(stream, r.from, r.to);
    primitive.execute(stream, arguments);
    for (auto& r : after) r.primitive.execute(stream, r.from, r.to);
    stream.wait();
  };
}

// Each call is waited for, or `calls` of them together, as in a model.
void product(const std::string& name, int64_t m, int64_t n, int64_t k, bool linear_weight,
             int calls) {
  bench::subject("tenon/" + name, calls, [=] {
    Tensor a = rand({m, k}), b = linear_weight ? rand({n, k}) : rand({k, n});
    return [=] {
      Tensor y;
      for (int i = 0; i < calls; ++i) y = linear_weight ? linear(a, b) : matmul(a, b);
      y.wait();
    };
  });
  // "packed": the second operand is in the layout that oneDNN likes best, as the weight of a layer
  // is that does not change.
  for (const bool packed : {false, true})
    bench::subject((packed ? "packed/" : "direct/") + name, calls, [=] {
      const dnnl::memory::desc a({m, k}, kF32, Tag::ab), y({m, n}, kF32, Tag::ab),
          b({k, n}, kF32,
            packed          ? Tag::any
            : linear_weight ? Tag::ba
                            : Tag::ab);
      return direct(dnnl::matmul::primitive_desc({a, b, y}, engine()),
                    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, calls);
    });
}
void product(const std::string& name, int64_t m, int64_t n, int64_t k, bool linear_weight) {
  product(name, m, n, k, linear_weight, 1);
  product(name + "_queued", m, n, k, linear_weight, 16);
}

// Averages of `planes` planes of size x size.
void average(int64_t planes, int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
  const std::string name = "avg_pool/" + std::to_string(planes) + "x" + std::to_string(size) +
                           "_k" + std::to_string(kernel) + "s" + std::to_string(stride);
  const AvgPool2dOptions options{.stride = stride, .padding = padding};
  bench::subject("tenon/" + name, [=] {
    Tensor x = rand({1, planes, size, size});
    return [=] { avg_pool2d(x, kernel, options).wait(); };
  });
  bench::subject("tenon/" + name + "_backward", [=] {
    Tensor x = rand({1, planes, size, size}).requires_grad_(), y = avg_pool2d(x, kernel, options),
           g = rand(y.shape());
    return [=]() mutable {
      y.backward(g, {.retain_graph = true});
      x.grad().wait();
      x.set_grad(Tensor());
    };
  });
  const int64_t out = (size + 2 * padding - kernel) / stride + 1;
  const dnnl::memory::desc large({1, planes, size, size}, kF32, Tag::nChw16c),
      small({1, planes, out, out}, kF32, Tag::nChw16c);
  const dnnl::memory::dims strides{stride, stride}, windows{kernel, kernel}, pad{padding, padding};
  constexpr auto algorithm = dnnl::algorithm::pooling_avg_include_padding;
  const auto forward = [=] {
    return dnnl::pooling_forward::primitive_desc(
        {dnnl::prop_kind::forward_training, algorithm, large, small, strides, windows, pad, pad},
        engine());
  };
  bench::subject("direct/" + name, [=] { return direct(forward(), {DNNL_ARG_SRC, DNNL_ARG_DST}); });
  bench::subject("direct/" + name + "_backward", [=] {
    return direct(dnnl::pooling_backward::primitive_desc(
                      {algorithm, large, small, strides, windows, pad, pad}, engine(), forward()),
                  {DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_DST});
  });
}

struct Conv {
  const char* name;
  int64_t c, size, o, kernel, stride, padding;
};

// The primitives of one convolution. `x`, `w` and `y` say in which layout they take their tensors.
struct Primitives {
  const Conv& c;
  int64_t n;
  Tag x = Tag::any, w = Tag::any, y = Tag::any;

  dnnl::memory::desc input() const { return {{n, c.c, c.size, c.size}, kF32, x}; }
  dnnl::memory::desc weight() const { return {{c.o, c.c, c.kernel, c.kernel}, kF32, w}; }
  dnnl::memory::desc output() const {
    const int64_t out = (c.size + 2 * c.padding - c.kernel) / c.stride + 1;
    return {{n, c.o, out, out}, kF32, y};
  }
  dnnl::memory::dims stride() const { return {c.stride, c.stride}; }
  dnnl::memory::dims padding() const { return {c.padding, c.padding}; }
  static constexpr auto algorithm = dnnl::algorithm::convolution_direct;

  dnnl::convolution_forward::primitive_desc forward() const {
    return {{dnnl::prop_kind::forward_training, algorithm, input(), weight(), output(), stride(),
             padding(), padding()},
            engine()};
  }
  dnnl::convolution_backward_data::primitive_desc backward_input() const {
    return {{algorithm, input(), weight(), output(), stride(), padding(), padding()},
            engine(),
            forward()};
  }
  dnnl::convolution_backward_weights::primitive_desc backward_weight() const {
    return {{algorithm, input(), weight(), output(), stride(), padding(), padding()},
            engine(),
            forward()};
  }
};

constexpr auto kForward = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
               kBackwardInput = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
               kBackwardWeight = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};

bool exist(const Primitives& p) try {
  p.forward(), p.backward_input(), p.backward_weight();
  return true;
} catch (const dnnl::error&) {
  return false;
}

// Called directly, in the layouts that it likes best, or on rows: with copies to those layouts, and
// as "plain" by a primitive that reads and writes rows itself, where there is one.
void direct_convolution(const Conv& c, int64_t n, const std::string& name) {
  const auto all = [name](const std::string& prefix, const Primitives& p, auto run) {
    bench::subject(prefix + name, [=] { return run(p.forward(), kForward); });
    bench::subject(prefix + name + "_input",
                   [=] { return run(p.backward_input(), kBackwardInput); });
    bench::subject(prefix + name + "_weight",
                   [=] { return run(p.backward_weight(), kBackwardWeight); });
  };
  const auto reordered = [](const auto& pd, auto names) { return on_rows(pd, names); };
  all("direct/", {c, n}, [](const auto& pd, auto names) { return direct(pd, names); });
  all("rows/", {c, n}, reordered);
  const Primitives plain{c, n, Tag::abcd, Tag::any, Tag::abcd};
  if (exist(plain)) all("plain/", plain, reordered);
}

void convolution(const Conv& c, int64_t n) {
  const std::string name = "conv/" + std::string(c.name) + "_n" + std::to_string(n);
  const Conv2dOptions options{.stride = c.stride, .padding = c.padding};
  const Shape x_shape{n, c.c, c.size, c.size}, w_shape{c.o, c.c, c.kernel, c.kernel};
  bench::subject("tenon/" + name, [=] {
    Tensor x = rand(x_shape), w = rand(w_shape);
    return [=] { conv2d(x, w, Tensor(), options).wait(); };
  });
  for (bool of_input : {true, false})
    bench::subject("tenon/" + name + (of_input ? "_input" : "_weight"), [=] {
      Tensor x = rand(x_shape).requires_grad_(of_input), w = rand(w_shape);
      w.requires_grad_(!of_input);
      Tensor y = conv2d(x, w, Tensor(), options), g = rand(y.shape());
      return [=]() mutable {
        y.backward(g, {.retain_graph = true});
        Tensor& leaf = of_input ? x : w;
        leaf.grad().wait();
        leaf.set_grad(Tensor());
      };
    });
  direct_convolution(c, n, name);
}

}  // namespace

int main(int argc, char** argv) {
  for (int64_t n : {32, 64, 96, 128, 192, 256, 512, 1024, 2048})
    product("matmul/" + std::to_string(n), n, n, n, false);
  product("matmul/vector_1024", 1024, 1, 1024, false);
  product("matmul/vector_4096", 4096, 1, 4096, false);
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 1024, 1024},
                         {1, 128, 784},
                         {1, 4096, 4096},
                         {2, 1024, 1024},
                         {4, 1024, 1024},
                         {8, 1024, 1024},
                         {16, 1024, 1024},
                         {32, 1024, 1024},
                         {64, 128, 784},
                         {64, 10, 128},
                         {64, 120, 400},
                         {64, 84, 120},
                         {64, 10, 84},
                         {256, 256, 784},
                         {256, 10, 256},
                         {256, 120, 400},
                         {256, 84, 120},
                         {512, 512, 512},
                         {16, 4096, 1024},
                         {64, 3072, 768},
                         {512, 3072, 768}})
    product("linear/" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k), m, n,
            k, true);
  for (auto [planes, size, kernel, stride, padding] : {std::array<int64_t, 5>{512, 112, 3, 2, 1},
                                                       {512, 28, 3, 1, 1},
                                                       {4096, 7, 7, 1, 0},
                                                       {384, 28, 2, 2, 0},
                                                       {1024, 10, 2, 2, 0}})
    average(planes, size, kernel, stride, padding);
  static const Conv convs[] = {
      {"lenet1", 1, 28, 6, 5, 1, 2},          {"lenet2", 6, 14, 16, 5, 1, 0},
      {"stem", 3, 224, 64, 7, 2, 3},          {"64x56", 64, 56, 64, 3, 1, 1},
      {"64x56_128_s2", 64, 56, 128, 3, 2, 1}, {"64x56_128_1x1s2", 64, 56, 128, 1, 2, 0},
      {"128x28", 128, 28, 128, 3, 1, 1},      {"128x28_256_s2", 128, 28, 256, 3, 2, 1},
      {"256x14", 256, 14, 256, 3, 1, 1},      {"256x14_512_s2", 256, 14, 512, 3, 2, 1},
      {"512x7", 512, 7, 512, 3, 1, 1},        {"512x4", 512, 4, 512, 3, 1, 1},
      {"256x8", 256, 8, 256, 3, 1, 1},        {"64x28_3", 64, 28, 3, 5, 1, 2},
      {"20x28_64", 20, 28, 64, 3, 1, 1}};
  for (auto& c : convs)
    for (int64_t n : {1, 8, 64}) {
      if (n == 64 && c.name[0] != 'l') continue;
      convolution(c, n);
    }
  return bench::run(argc, argv);
}
