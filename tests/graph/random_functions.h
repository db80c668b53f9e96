// Random functions of operators, views, changes in place and gradients. The number of a function
// says all that it does.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include <tenon/tenon.h>

namespace tenon::test {

// The choices of one function, which are the same in each of its runs.
class Choices {
 public:
  explicit Choices(uint64_t seed) : bits_(seed) {}
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(bits_); }
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(bits_) < p; }

 private:
  std::mt19937_64 bits_;
};

// What a function sees besides its arguments.
struct World {
  std::vector<Tensor> state;   // it may change these in place
  std::vector<Tensor> leaves;  // of gradients
  std::vector<Device> devices = {default_device()};
};

inline Tensor activated(Choices& c, const Tensor& x) {
  switch (c.below(6)) {
    case 0:
      return relu(x);
    case 1:
      return sigmoid(x);
    case 2:
      return gelu(x);
    case 3:
      return leaky_relu(x, 0.1);
    case 4:
      return relu6(x);
    default:
      return x;
  }
}

// Tensors of 4 x 4, so that everything fits together.
inline Tensor one_step(Choices& c, std::vector<Tensor>& pool, World& world) {
  const auto any = [&] { return pool[c.below(pool.size())]; };
  const Tensor a = any(), b = any().to(a.device());
  switch (c.below(29)) {
    case 0:
      return a + b;
    case 1:
      return a - b * 0.5;
    case 2:
      return a * b;
    case 3:
      return relu(a);
    case 4:
      return sigmoid(a) * tanh(b);
    case 5:
      return matmul(a, b);
    case 6:
      return a.t();
    case 7:
      return softmax(a, 1);
    case 8:
      return (a - a.mean({1}, true)) / (a.std({0}, 1, true) + 1.0);
    case 9:
      return cat({a.narrow(0, 1, 2), b.narrow(0, 0, 2)}, 0);
    case 10:
      return where(a > b, a, b * 0.1);
    case 11:
      return a.reshape({2, 8}).sum({1}, true).expand({2, 8}).reshape({4, 4});
    case 12:
      return dropout(a, 0.4);
    case 13:
      return a.flip({0}) + rand({4, 4}).to(a.device());
    case 14:
      return a[static_cast<int64_t>(c.below(4))].expand({4, 4});
    case 15:
      return gelu(layer_norm(a, {4}));
    case 16:
      return a.detach().clone().clamp(-1.0, 1.0);
    case 17: {  // a part of something new is changed
      Tensor copy = a.detach().clone();
      copy.narrow(static_cast<int64_t>(c.below(2)), 1, 2).mul_(0.5);
      copy[0].copy_(b.detach()[1]);
      return copy;
    }
    case 18: {  // something from outside is changed
      Tensor target = world.state[c.below(world.state.size())];
      const Tensor there = a.detach().clamp(-1.0, 1.0).to(target.device());
      c.chance(0.5) ? target.mul_(0.9) : target.copy_(target * 0.5 + there);
      return target + b.to(target.device());
    }
    case 19: {
      Tensor target = world.state[c.below(world.state.size())];
      const Tensor there = b.detach().clamp(-1.0, 1.0)[2].to(target.device());
      target[static_cast<int64_t>(c.below(4))].add_(there);
      return target.select(1, 2).clone().expand({4, 4}) * a.to(target.device());
    }
    case 20:
      return world.leaves[c.below(world.leaves.size())].to(a.device()) * a;
    case 21:  // a part, in another order
      return a.t().to(world.devices[c.below(world.devices.size())]);
    case 22: {  // something from outside gets values from elsewhere
      Tensor target = world.state[c.below(world.state.size())];
      target.copy_(a.detach().clamp(-1.0, 1.0));
      return target * 0.5;
    }
    case 23:
      return activated(c, linear(a, b, b[0]));
    case 24: {
      const Tensor kernel = b.narrow(0, 0, 3).narrow(1, 1, 3).reshape({1, 1, 3, 3});
      return activated(c, conv2d(a.reshape({1, 1, 4, 4}), kernel, {}, {.padding = 1}))
          .reshape({4, 4});
    }
    case 25: {  // where it lies
      Tensor y = matmul(a.detach(), b.detach());
      c.chance(0.5) ? y.relu_() : y.clamp_(-0.5, 0.5);
      return c.chance(0.5) ? y : y.t() + a;
    }
    case 26: {
      const Tensor more = any().to(a.device());
      return activated(c, c.chance(0.5) ? linear(a, b, b[0]) + more : more + matmul(a, b));
    }
    case 27: {
      const Tensor& state = world.state[c.below(world.state.size())];
      const Tensor mean = state[0].to(a.device()).clone(),
                   var = state[1].to(a.device()).square() + 0.5;
      const Tensor y = batch_norm(a, mean, var, b[2], b[3], c.chance(0.4), 0.1, 1e-5);
      return activated(c, c.chance(0.5) ? y + a : y);
    }
    default:
      return a.cumsum(0) * 0.25 + b.argmax(1).to(f32).unsqueeze(1);
  }
}

// What a function computes before it decides what to do with it.
inline std::vector<Tensor> run_steps(Choices& c, World& world, const Tensor& x, const Tensor& y) {
  std::vector<Tensor> pool = {x, y, world.state[0].clone(), world.leaves[0]};
  const size_t steps = 2 + c.below(14);
  for (size_t i = 0; i < steps; ++i) pool.push_back(one_step(c, pool, world));
  return pool;
}

// Without a backward pass: what it returns may have a history.
inline std::vector<Tensor> run_forward(uint64_t seed, World& world, const Tensor& x,
                                       const Tensor& y) {
  Choices c(seed);
  const auto pool = run_steps(c, world, x, y);
  std::vector<Tensor> results;
  const size_t count = 1 + c.below(3);
  for (size_t i = 0; i < count; ++i) results.push_back(pool[4 + c.below(pool.size() - 4)]);
  return results;
}

inline std::vector<Tensor> run_function(uint64_t seed, World& world, const Tensor& x,
                                        const Tensor& y) {
  Choices c(seed);
  const auto pool = run_steps(c, world, x, y);
  const bool learns = c.chance(0.6);
  std::vector<Tensor> results;
  if (learns) {
    if (c.chance(0.7))
      for (auto& leaf : world.leaves) leaf.set_grad(Tensor());
    Tensor loss = pool.back().clamp(-5.0, 5.0).mean();
    if (!loss.requires_grad()) loss = loss + world.leaves[0].sum().to(loss.device());
    loss.backward();
    if (c.chance(0.5))
      no_grad([&] {
        for (auto& leaf : world.leaves)
          if (leaf.grad().defined()) leaf.sub_(leaf.grad() * 0.1);
      });
    results.push_back(loss.detach());
  }
  const size_t count = c.below(3);
  for (size_t i = 0; i < count; ++i) results.push_back(pool[c.below(pool.size())].detach());
  if (c.chance(0.3)) results.push_back(y);
  return results;
}

inline World make_world(uint64_t seed, const std::vector<Device>& devices = {default_device()}) {
  manual_seed(seed);
  World world;
  world.devices = devices;
  for (auto& device : {devices.front(), devices.back()}) {
    world.state.push_back(randn({4, 4}).to(device));
    world.leaves.push_back(randn({4, 4}).to(device).requires_grad_());
  }
  return world;
}

}  // namespace tenon::test
