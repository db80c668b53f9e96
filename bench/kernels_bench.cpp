// Each family of kernels, at sizes where memory or arithmetic rules.
#include <tenon/core/ops/pointwise/fused.h>

#include "subject.h"

using namespace tenon;

namespace {

// `make` gives the inputs; `body` is run on them and waited for.
template <class F>
void unary(const std::string& name, const Shape& shape, F f) {
  bench::subject(name, [=] {
    Tensor x = rand(shape);
    return [=] { f(x).wait(); };
  });
}
template <class F>
void binary(const std::string& name, const Shape& a_shape, const Shape& b_shape, F f) {
  bench::subject(name, [=] {
    Tensor a = rand(a_shape), b = rand(b_shape);
    return [=] { f(a, b).wait(); };
  });
}
// Forward and backward of the sum of f(x).
template <class F>
void backward(const std::string& name, const Shape& shape, F f) {
  bench::subject(name, [=] {
    Tensor x = rand(shape).requires_grad_();
    return [=]() mutable {
      f(x).sum().backward();
      x.grad().wait();
      x.set_grad(Tensor());
    };
  });
}

void pointwise() {
  const Shape big{10'000'000};
  unary("pointwise/x*2+1", big, [](const Tensor& x) { return x * 2 + 1; });
  unary("pointwise/relu", big, [](const Tensor& x) { return relu(x); });
  unary("pointwise/exp", big, [](const Tensor& x) { return exp(x); });
  unary("pointwise/log", big, [](const Tensor& x) { return log(x); });
  unary("pointwise/sigmoid", big, [](const Tensor& x) { return sigmoid(x); });
  unary("pointwise/tanh", big, [](const Tensor& x) { return tanh(x); });
  unary("pointwise/gelu", big, [](const Tensor& x) { return gelu(x); });
  unary("pointwise/sqrt", big, [](const Tensor& x) { return sqrt(x); });
  binary("pointwise/add", big, big, [](const Tensor& a, const Tensor& b) { return a + b; });
  binary("pointwise/mul", big, big, [](const Tensor& a, const Tensor& b) { return a * b; });
  binary("pointwise/div", big, big, [](const Tensor& a, const Tensor& b) { return a / b; });
  binary("pointwise/add_row", {4096, 1024}, {1024},
         [](const Tensor& a, const Tensor& b) { return a + b; });
  binary("pointwise/add_column", {4096, 1024}, {4096, 1},
         [](const Tensor& a, const Tensor& b) { return a + b; });
  binary("pointwise/add_transposed", {2048, 2048}, {2048, 2048},
         [](const Tensor& a, const Tensor& b) { return a + b.t(); });
  unary("pointwise/add_1000", {1000}, [](const Tensor& x) { return x + x; });
  unary("copy/contiguous_transposed", {2048, 2048},
        [](const Tensor& x) { return x.t().contiguous(); });
  unary("copy/clone", big, [](const Tensor& x) { return x.clone(); });
  unary("copy/to_f64", big, [](const Tensor& x) { return x.to(DType::f64); });
  unary("random/dropout", big, [](const Tensor& x) { return dropout(x, 0.5, true); });
  bench::subject("random/rand", [] { return [] { rand({10'000'000}).wait(); }; });
  bench::subject("random/randn", [] { return [] { randn({10'000'000}).wait(); }; });
}

// A program of `fused`, and its members one by one: the ratio is what fusing is worth.
void fused(const std::string& name, const Shape& shape, const FusedProgram& program,
           std::vector<Scalar> numbers, size_t inputs) {
  for (const bool by_members : {true, false})
    bench::subject(name + (by_members ? "_by_members" : ""), [=, &program] {
      std::vector<Tensor> x;
      for (size_t i = 0; i < inputs; ++i) x.push_back(rand(shape));
      return [=, &program] {
        std::vector<const Tensor*> in;
        for (auto& t : x) in.push_back(&t);
        (by_members ? run_members(program, in, numbers) : run_fused(program, in, numbers))[0]
            .wait();
      };
    });
}

const FusedProgram& five_cheap_ones() {
  FusedBuilder b;
  const FusedValue x = b.input(f32), y = b.input(f32);
  FusedValue t = x;
  for (const char* op : {"add", "mul", "sub", "maximum", "add"}) {
    const FusedValue operands[] = {t, y};
    t = b.step(op, operands, 0);
  }
  b.output(t);
  return b.finish();
}

const FusedProgram& gelu_of_primitives() {
  FusedBuilder b;
  const FusedValue x = b.input(f32);
  const auto number = [&](const char* op, FusedValue a) {
    const FusedValue operands[] = {a, {}};
    return b.step(op, operands, 1, "reverse", false);
  };
  const FusedValue scaled[] = {number("mul", x)};
  const FusedValue factors[] = {number("mul", x), number("add", b.step("erf", scaled, 0))};
  b.output(b.step("mul", factors, 0));
  return b.finish();
}

// A member of no number, and one of the number that comes next.
FusedValue of(FusedBuilder& b, const char* op, std::initializer_list<FusedValue> operands) {
  return b.step(op, std::span(operands.begin(), operands.size()), 0);
}
FusedValue with_number(FusedBuilder& b, const char* op, FusedValue a) {
  const FusedValue operands[] = {a, {}};
  return b.step(op, operands, 1, "reverse", false);
}

const FusedProgram& layer_norm_of_primitives() {
  FusedBuilder b;
  const FusedValue x = b.input(f32), centered = of(b, "sub", {x, of(b, "mean", {x})}),
                   var = of(b, "mean", {of(b, "square", {centered})}),
                   scale = of(b, "rsqrt", {with_number(b, "add", var)}),
                   y = of(b, "mul", {centered, scale});
  const FusedValue scaled = with_number(b, "mul", y);
  b.output(with_number(b, "add", scaled));
  return b.finish();
}

const FusedProgram& softmax_of_primitives() {
  FusedBuilder b;
  const FusedValue x = b.input(f32), e = of(b, "exp", {of(b, "sub", {x, of(b, "amax", {x})})});
  b.output(of(b, "div", {e, of(b, "sum", {e})}));
  return b.finish();
}

void fused_programs() {
  for (const int64_t n : {1 << 10, 1 << 14, 1 << 18, 1 << 22}) {
    const std::string size = std::to_string(n);
    fused("fused/five_" + size, {n}, five_cheap_ones(), {}, 2);
    fused("fused/gelu_" + size, {n}, gelu_of_primitives(), {0.70710678118654752, 0.5, 1.0}, 1);
  }
  for (const int64_t n : {256, 1024, 4096}) {
    const Shape rows{10'000'000 / n, n};
    const std::string size = std::to_string(n);
    fused("fused/layer_norm_" + size, rows, layer_norm_of_primitives(), {1e-5, 1.5, 0.5}, 1);
    fused("fused/softmax_" + size, rows, softmax_of_primitives(), {}, 1);
  }
  fused("fused/gelu", {10'000'000}, gelu_of_primitives(), {0.70710678118654752, 0.5, 1.0}, 1);
}

void reduce() {
  const Shape square{3200, 3200};
  unary("reduce/sum", square, [](const Tensor& x) { return x.sum(); });
  unary("reduce/sum_rows", square, [](const Tensor& x) { return sum(x, {1}); });
  unary("reduce/sum_columns", square, [](const Tensor& x) { return sum(x, {0}); });
  unary("reduce/mean_rows", square, [](const Tensor& x) { return mean(x, {1}); });
  unary("reduce/amax_rows", square, [](const Tensor& x) { return amax(x, {1}); });
  unary("reduce/argmax_rows", square, [](const Tensor& x) { return argmax(x, 1); });
  unary("reduce/var_rows", square, [](const Tensor& x) { return var(x, {1}); });
  unary("reduce/logsumexp_rows", square, [](const Tensor& x) { return logsumexp(x, {1}); });
  unary("reduce/logsumexp_columns", square, [](const Tensor& x) { return logsumexp(x, {0}); });
}

void linear_algebra() {
  for (int64_t n : {64, 128, 256, 512, 1024}) {
    binary("matmul/" + std::to_string(n), {n, n}, {n, n},
           [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  }
  binary("matmul/512_transposed", {512, 512}, {512, 512},
         [](const Tensor& a, const Tensor& b) { return matmul(a, b.t()); });
  binary("matmul/batched_32x128", {32, 128, 128}, {32, 128, 128},
         [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  binary("matmul/vector_1024", {1024, 1024}, {1024},
         [](const Tensor& a, const Tensor& b) { return matmul(a, b); });
  binary("matmul/linear_256x784x256", {256, 784}, {256, 784},
         [](const Tensor& x, const Tensor& w) { return linear(x, w); });
}

struct ConvCase {
  const char* name;
  Shape x, w;
  int64_t padding;
};

void convolution() {
  const ConvCase cases[] = {{"lenet1", {256, 1, 28, 28}, {6, 1, 5, 5}, 2},
                            {"lenet2", {256, 6, 14, 14}, {16, 6, 5, 5}, 0},
                            {"64x56_3x3", {8, 64, 56, 56}, {64, 64, 3, 3}, 1},
                            {"256x14_1x1", {16, 256, 14, 14}, {256, 256, 1, 1}, 0}};
  for (auto& c : cases) {
    Conv2dOptions options{.padding = c.padding};
    binary(std::string("conv/") + c.name, c.x, c.w,
           [=](const Tensor& x, const Tensor& w) { return conv2d(x, w, Tensor(), options); });
    bench::subject(std::string("conv/") + c.name + "_backward", [=] {
      Tensor x = rand(c.x).requires_grad_(), w = rand(c.w).requires_grad_();
      return [=]() mutable {
        conv2d(x, w, Tensor(), options).sum().backward();
        x.grad().wait(), w.grad().wait();
        x.set_grad(Tensor()), w.set_grad(Tensor());
      };
    });
  }
  const Shape maps{256, 16, 28, 28};
  unary("pool/max", maps, [](const Tensor& x) { return max_pool2d(x, {2, 2}); });
  unary("pool/avg", maps, [](const Tensor& x) { return avg_pool2d(x, {2, 2}); });
  backward("pool/max_backward", maps, [](const Tensor& x) { return max_pool2d(x, {2, 2}); });
  backward("pool/avg_backward", maps, [](const Tensor& x) { return avg_pool2d(x, {2, 2}); });
}

void normalization() {
  const Shape rows{4096, 1024};
  unary("softmax/softmax", rows, [](const Tensor& x) { return softmax(x, 1); });
  unary("softmax/log_softmax", rows, [](const Tensor& x) { return log_softmax(x, 1); });
  unary("softmax/columns", rows, [](const Tensor& x) { return softmax(x, 0); });
  backward("softmax/backward", rows, [](const Tensor& x) { return softmax(x, 1).square(); });
  for (Shape shape : {Shape{256, 10}, Shape{4096, 1024}}) {
    bench::subject(
        "loss/cross_entropy_" + std::to_string(shape[0]) + "x" + std::to_string(shape[1]), [=] {
          Tensor x = rand(shape).requires_grad_(), y = randint(0, shape[1], {shape[0]});
          return [=]() mutable {
            cross_entropy(x, y).backward();
            x.grad().wait();
            x.set_grad(Tensor());
          };
        });
  }
  bench::subject("norm/layer_norm", [] {
    Tensor x = rand({4096, 768}), w = ones({768}), b = zeros({768});
    return [=] { layer_norm(x, {768}, w, b).wait(); };
  });
  bench::subject("norm/batch_norm", [] {
    Tensor x = rand({32, 64, 28, 28}), w = ones({64}), b = zeros({64}), mean = zeros({64}),
           var = ones({64});
    return [=]() mutable { batch_norm(x, mean, var, w, b, true).wait(); };
  });
  backward("norm/layer_norm_backward", {4096, 768},
           [](const Tensor& x) { return layer_norm(x, {768}, Tensor(), Tensor()).square(); });
  bench::subject("index/embedding", [] {
    Tensor table = rand({32000, 256}), indices = randint(0, 32000, {4096});
    return [=] { embedding(indices, table).wait(); };
  });
  bench::subject("index/embedding_backward", [] {
    Tensor table = rand({32000, 256}).requires_grad_(), indices = randint(0, 32000, {4096});
    return [=]() mutable {
      embedding(indices, table).sum().backward();
      table.grad().wait();
      table.set_grad(Tensor());
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  pointwise();
  fused_programs();
  reduce();
  linear_algebra();
  convolution();
  normalization();
  return bench::run(argc, argv);
}
