// Operators at sizes where calls, caches or memory rule, forward and backward, in f32 and bf16.
// bench/torch_operators.py has the same lines.
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "subject.h"

using namespace tenon;

namespace {

using Inputs = std::vector<Tensor>;
using Body = std::function<Tensor(const Inputs&)>;

struct Also {
  bool backward = false;  // the gradients of all inputs, of the sum of the results
  bool bf16 = false;      // the same in that type
  bool forward = true;    // false: only what is asked for beside it
  int64_t repeat = 1;     // calls before it is waited for
};

void forward(const std::string& name, const std::vector<Shape>& shapes, DType dtype, int64_t repeat,
             const Body& f) {
  bench::subject(name, repeat, [=] {
    Inputs x;
    for (auto& shape : shapes) x.push_back(rand(shape).to(dtype));
    return [=] {
      Tensor y;
      for (int64_t i = 0; i < repeat; ++i) y = f(x);
      y.wait();
    };
  });
}
void backward(const std::string& name, const std::vector<Shape>& shapes, DType dtype,
              int64_t repeat, const Body& f) {
  bench::subject(name, repeat, [=] {
    Inputs x;
    for (auto& shape : shapes) x.push_back(rand(shape).to(dtype).requires_grad_());
    return [=]() mutable {
      for (int64_t i = 0; i < repeat; ++i) {
        for (auto& input : x) input.set_grad(Tensor());
        f(x).sum().backward();
      }
      for (auto& input : x) input.grad().wait();
    };
  });
}

// The subjects group/name, group/name_backward, group/name_bf16 and group/name_bf16_backward.
void subjects(const std::string& name, const std::vector<Shape>& shapes, const Body& f,
              Also also = {}) {
  if (also.forward) forward(name, shapes, f32, also.repeat, f);
  if (also.backward) backward(name + "_backward", shapes, f32, also.repeat, f);
  if (!also.bf16) return;
  forward(name + "_bf16", shapes, bf16, also.repeat, f);
  if (also.backward) backward(name + "_bf16_backward", shapes, bf16, also.repeat, f);
}

struct Size {
  const char* suffix;
  int64_t side;  // of a square matrix
  int64_t repeat;
};
// What kernels_bench.cpp has in memory is not repeated there.
constexpr Size kSmall{"_1k", 32, 100}, kCache{"_100k", 320, 10}, kMemory{"_10M", 3200, 1};

void pointwise(const Size& s, bool forward) {
  const Shape x{s.side, s.side}, row{s.side}, column{s.side, 1};
  auto unary = [&](const char* name, auto f, bool backward = false, bool bf16 = false) {
    subjects(std::string("pointwise/") + name + s.suffix, {x},
             [=](const Inputs& in) { return f(in[0]); }, {backward, bf16, forward, s.repeat});
  };
  auto binary = [&](const char* name, const Shape& y, auto f, bool backward = false,
                    bool bf16 = false) {
    subjects(std::string("pointwise/") + name + s.suffix, {x, y},
             [=](const Inputs& in) { return f(in[0], in[1]); },
             {backward, bf16, forward, s.repeat});
  };
  unary(
      "exp", [](const Tensor& a) { return exp(a); }, false, true);
  unary(
      "gelu", [](const Tensor& a) { return gelu(a); }, true, true);
  unary(
      "relu", [](const Tensor& a) { return relu(a); }, true);
  unary(
      "sigmoid", [](const Tensor& a) { return sigmoid(a); }, true);
  unary(
      "silu", [](const Tensor& a) { return silu(a); }, true);
  binary(
      "add", x, [](const Tensor& a, const Tensor& b) { return a + b; }, false, true);
  binary(
      "mul", x, [](const Tensor& a, const Tensor& b) { return a * b; }, true);
  binary(
      "add_row", row, [](const Tensor& a, const Tensor& b) { return a + b; }, true);
  binary(
      "mul_column", column, [](const Tensor& a, const Tensor& b) { return a * b; }, true);
  if (!forward) return;
  unary("tanh", [](const Tensor& a) { return tanh(a); });
  unary("log", [](const Tensor& a) { return log(a); });
  unary("clamp", [](const Tensor& a) { return clamp(a, 0.2, 0.8); });
  binary("where", x, [](const Tensor& a, const Tensor& b) { return where(gt(a, 0.5), a, b); });
}

// A million elements, and changes in place.
void more_pointwise() {
  subjects("pointwise/gelu_tanh_1M", {{1024, 1024}},
           [](const Inputs& in) { return gelu(in[0], "tanh"); }, {.backward = true, .bf16 = true});
  subjects("pointwise/add_inplace_10M", {{3200, 3200}, {3200, 3200}}, [](const Inputs& in) {
    Tensor x = in[0];
    return x += in[1];
  });
  subjects("pointwise/clamp_inplace_10M", {{3200, 3200}}, [](const Inputs& in) {
    Tensor x = in[0];
    return x.clamp_(0.2, 0.8);
  });
  subjects("pointwise/relu_inplace_10M", {{3200, 3200}}, [](const Inputs& in) {
    Tensor x = in[0];
    return x.relu_();
  });
}

void reductions(const Size& s, bool forward) {
  auto unary = [&](const char* name, auto f, bool backward = false, bool bf16 = false) {
    subjects(std::string("reduce/") + name + s.suffix, {{s.side, s.side}},
             [=](const Inputs& in) { return f(in[0]); }, {backward, bf16, forward, s.repeat});
  };
  unary(
      "sum_rows", [](const Tensor& x) { return sum(x, {1}); }, false, true);
  unary(
      "logsumexp_rows", [](const Tensor& x) { return logsumexp(x, {1}); }, true);
  unary(
      "var_rows", [](const Tensor& x) { return var(x, {1}); }, true);
  unary(
      "cumsum", [](const Tensor& x) { return cumsum(x, 1); }, true);
  if (!forward) return;
  unary("sum", [](const Tensor& x) { return sum(x); });
  unary("sum_columns", [](const Tensor& x) { return sum(x, {0}); });
  unary("amax_rows", [](const Tensor& x) { return amax(x, {1}); });
  unary("argmax_rows", [](const Tensor& x) { return argmax(x, 1); });
  unary(
      "softmax", [](const Tensor& x) { return softmax(x, 1); }, true);
  unary(
      "log_softmax", [](const Tensor& x) { return log_softmax(x, 1); }, true);
}

void products() {
  for (int64_t n : {16, 2048})
    subjects("matmul/" + std::to_string(n), {{n, n}, {n, n}},
             [](const Inputs& in) { return matmul(in[0], in[1]); }, {.repeat = n == 16 ? 100 : 1});
  for (int64_t n : {64, 256, 1024})
    subjects("matmul/" + std::to_string(n), {{n, n}, {n, n}},
             [](const Inputs& in) { return matmul(in[0], in[1]); },
             {.backward = true, .bf16 = true, .forward = false});
  subjects("matmul/linear_32x512x512", {{32, 512}, {512, 512}, {512}},
           [](const Inputs& in) { return linear(in[0], in[1], in[2]); }, {.backward = true});
  subjects("matmul/batched_96x64x32", {{96, 64, 32}, {96, 32, 64}},
           [](const Inputs& in) { return matmul(in[0], in[1]); }, {.backward = true});
}

// The shapes of ResNet-18 on pictures of 32 x 32.
void convolutions() {
  struct Layer {
    const char* name;
    int64_t in, out, side, kernel, stride;
  };
  for (auto& l : std::initializer_list<Layer>{{"resnet_3x64", 3, 64, 32, 3, 1},
                                              {"resnet_64", 64, 64, 32, 3, 1},
                                              {"resnet_64x128", 64, 128, 32, 3, 2},
                                              {"resnet_128", 128, 128, 16, 3, 1},
                                              {"resnet_256", 256, 256, 8, 3, 1},
                                              {"resnet_512", 512, 512, 4, 3, 1},
                                              {"resnet_shortcut", 64, 128, 32, 1, 2}}) {
    const Conv2dOptions options{.stride = l.stride, .padding = l.kernel / 2};
    subjects(std::string("conv/") + l.name,
             {{8, l.in, l.side, l.side}, {l.out, l.in, l.kernel, l.kernel}},
             [=](const Inputs& in) { return conv2d(in[0], in[1], Tensor(), options); },
             {.backward = true});
  }
  subjects(
      "conv/depthwise", {{8, 64, 32, 32}, {64, 1, 3, 3}},
      [](const Inputs& in) { return conv2d(in[0], in[1], Tensor(), {.padding = 1, .groups = 64}); },
      {.backward = true});
  subjects("conv/transpose", {{8, 64, 16, 16}, {64, 32, 4, 4}},
           [](const Inputs& in) {
             return conv_transpose2d(in[0], in[1], Tensor(), {.stride = 2, .padding = 1});
           },
           {.backward = true});
  subjects("conv/1d", {{16, 64, 256}, {64, 64, 3}},
           [](const Inputs& in) { return conv1d(in[0], in[1], Tensor(), {.padding = 1}); },
           {.backward = true});
}

void layers() {
  subjects("norm/layer_norm_32x128", {{32, 128}, {128}, {128}},
           [](const Inputs& in) { return layer_norm(in[0], {128}, in[1], in[2]); },
           {.backward = true, .repeat = 10});
  subjects("norm/layer_norm_4096x768", {{4096, 768}, {768}, {768}},
           [](const Inputs& in) { return layer_norm(in[0], {768}, in[1], in[2]); },
           {.backward = true, .bf16 = true});
  subjects("norm/group_norm", {{16, 64, 32, 32}, {64}, {64}},
           [](const Inputs& in) { return group_norm(in[0], 8, in[1], in[2]); },
           {.backward = true, .bf16 = true});
  subjects("norm/rms_norm", {{4096, 768}, {768}},
           [](const Inputs& in) { return rms_norm(in[0], {768}, in[1]); },
           {.backward = true, .bf16 = true});
  subjects("norm/batch_norm_grad", {{32, 64, 16, 16}, {64}, {64}},
           [](const Inputs& in) { return batch_norm(in[0], {}, {}, in[1], in[2], true); },
           {.backward = true, .bf16 = true, .forward = false});
  subjects("pool/max_3x3", {{8, 64, 56, 56}},
           [](const Inputs& in) {
             return max_pool2d(in[0], {3, 3}, {.stride = 2, .padding = 1});
           },
           {.backward = true});
  subjects("pool/adaptive", {{32, 512, 7, 7}},
           [](const Inputs& in) {
             return adaptive_avg_pool2d(in[0], {1, 1});
           },
           {.backward = true});
  subjects("pool/bilinear", {{8, 32, 32, 32}},
           [](const Inputs& in) {
             return interpolate(in[0], {.size = {64, 64}, .mode = "bilinear"});
           },
           {.backward = true});
  for (int64_t n : {64, 512}) {
    const std::string name = "attention/causal_" + std::to_string(n);
    const std::vector<Shape> qkv(3, Shape{4, 8, n, 64});
    auto causal = [](const Inputs& in) {
      return scaled_dot_product_attention(in[0], in[1], in[2], {.is_causal = true});
    };
    subjects(name, qkv, causal, {.backward = true, .bf16 = n == 512});
  }
  subjects("loss/mse", {{1024, 1024}, {1024, 1024}},
           [](const Inputs& in) { return mse_loss(in[0], in[1]); }, {.backward = true});
  subjects("loss/smooth_l1", {{1024, 1024}, {1024, 1024}},
           [](const Inputs& in) { return smooth_l1_loss(in[0], in[1]); },
           {.backward = true, .bf16 = true});
  subjects("loss/huber", {{1024, 1024}, {1024, 1024}},
           [](const Inputs& in) { return huber_loss(in[0], in[1]); },
           {.backward = true, .bf16 = true});
  subjects("loss/mse_none", {{1024, 1024}, {1024, 1024}},
           [](const Inputs& in) { return mse_loss(in[0], in[1], Reduction::none); },
           {.backward = true});
  subjects("loss/smooth_l1_none", {{1024, 1024}, {1024, 1024}},
           [](const Inputs& in) { return smooth_l1_loss(in[0], in[1], Reduction::none); },
           {.backward = true});
  subjects("loss/bce_with_logits", {{1024, 1024}, {1024, 1024}},
           [](const Inputs& in) { return binary_cross_entropy_with_logits(in[0], in[1]); },
           {.backward = true});
}

// Two layers of 128 over sequences of 64 steps, 32 at a time.
template <class Net>
void recurrent(const std::string& name) {
  auto prepare = [](bool backward) {
    Net net(128, 128, {.num_layers = 2});
    Tensor x = rand({64, 32, 128});
    return [=]() mutable {
      net.zero_grad();
      Tensor y = std::get<0>(net(x));
      if (backward) y.sum().backward();
      synchronize();
    };
  };
  bench::subject("recurrent/" + name, [=] { return prepare(false); });
  bench::subject("recurrent/" + name + "_step", [=] { return prepare(true); });
}

// Values move: what counts is memory.
void moves() {
  Tensor rows = randint(0, 4096, {4096}), all = randint(0, 1024, {4096, 1024});
  const Shape x{4096, 1024};
  subjects("index/index_select", {x},
           [=](const Inputs& in) { return index_select(in[0], 0, rows); }, {.backward = true});
  subjects("index/gather", {x}, [=](const Inputs& in) { return gather(in[0], 1, all); },
           {.backward = true});
  subjects("index/scatter_add", {x, x},
           [=](const Inputs& in) { return scatter_add(in[0], 1, all, in[1]); });
  subjects("index/topk", {x}, [](const Inputs& in) { return topk(in[0], 10, 1).values; });
  subjects("index/sort", {{1024, 1024}}, [](const Inputs& in) { return sort(in[0], 1).values; });
  subjects("index/cat", {x, x},
           [](const Inputs& in) {
             return cat({in[0], in[1]}, 1);
           },
           {.backward = true});
  subjects("index/pad", {{32, 64, 32, 32}},
           [](const Inputs& in) {
             return pad(in[0], {1, 1, 1, 1});
           },
           {.backward = true});
  subjects("index/roll", {x}, [](const Inputs& in) { return roll(in[0], {3}, {1}); });
  subjects("index/flip", {x}, [](const Inputs& in) { return flip(in[0], 1); });
  subjects("index/tril", {{2048, 2048}}, [](const Inputs& in) { return tril(in[0]); });
  subjects("index/permute", {{32, 64, 32, 32}}, [](const Inputs& in) {
    return in[0].permute({0, 2, 3, 1}).contiguous();
  });
}

}  // namespace

int main(int argc, char** argv) {
  for (auto& size : {kSmall, kCache}) pointwise(size, true), reductions(size, true);
  pointwise(kMemory, false), more_pointwise(), reductions(kMemory, false);
  products();
  convolutions();
  layers();
  recurrent<nn::RNN>("rnn"), recurrent<nn::GRU>("gru"), recurrent<nn::LSTM>("lstm");
  moves();
  return bench::run(argc, argv);
}
