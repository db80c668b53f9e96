// Random functions of tensors that share memory: views of one tensor, and memory of the user that
// several tensors lie over. Compiled, they do what they do plainly, bit for bit.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/tenon.h>

#include "bits.h"
#include "fuzz.h"

BOOST_AUTO_TEST_SUITE(random_aliases_test)

using namespace tenon;
using test::same_bits;

namespace {

constexpr int64_t kElements = 40;

struct Place {
  size_t base = 0;
  int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

// Four tensors in memory of the library, and memory of the user, which lies below two tensors.
class Scene {
 public:
  explicit Scene(DType dtype) : users_(kElements * 8) {
    for (int i = 0; i < 2; ++i) bases_.push_back(zeros({kElements}, dtype));
    bases_.push_back(from_blob(users_.data(), {kElements}, dtype, [](void*) {}));
    bases_.push_back(
        from_blob(users_.data() + 8 * size_of(dtype), {kElements - 8}, dtype, [](void*) {}));
    for (int i = 0; i < 2; ++i) bases_.push_back(zeros({kElements}, dtype));
    fill();
  }

  void fill() {
    for (const size_t i : {0, 1, 2, 4, 5})
      bases_[i].copy_((arange(0, kElements) * 0.25 - static_cast<double>(i)).to(bases_[i].dtype()));
  }
  // `size` elements, or a tensor of no dimensions for -1.
  Tensor at(const Place& place, int64_t size) const {
    const Tensor& base = bases_[place.base];
    return size < 0 ? base.select(0, place.offset) : base.narrow(0, place.offset, size);
  }
  const std::vector<Tensor>& all() const { return bases_; }
  std::vector<uint64_t> versions() const {
    std::vector<uint64_t> found;
    for (auto& base : bases_) found.push_back(base.version());
    return found;
  }

 private:
  std::vector<uint8_t> users_;
  std::vector<Tensor> bases_;
};

struct Step {
  uint32_t kind, a, b;
};

std::vector<Tensor> run(const std::vector<Step>& steps, std::vector<Tensor> values) {
  const auto half = [](const Tensor& x, bool last) {
    const int64_t size = x.size(0), some = (size + 1) / 2;
    return x.narrow(0, last ? size - some : 0, some);
  };
  for (auto& step : steps) {
    const Tensor a = values[step.a % values.size()], b = values[step.b % values.size()];
    Tensor changed = a;
    switch (step.kind) {
      case 0:
        values.push_back(a + b);
        break;
      case 1:
        values.push_back(maximum(a, b) - b);
        break;
      case 2:
        values.push_back(a.clone());
        break;
      case 3:
        values.push_back(a + b.sum().to(b.dtype()));
        break;
      case 4:
        changed.add_(b);
        break;
      case 5:
        changed.copy_(b);
        break;
      default:
        if (a.dim() == 0) break;
        half(changed, step.kind == 6).copy_(half(b, step.kind != 6));
    }
  }
  return {values.back(), values[values.size() / 2] + values[0]};
}

// A function, and where its arguments lie in each call.
struct Trial {
  DType dtype;
  int64_t size;
  Place outside;
  std::vector<Step> steps;
  std::vector<std::vector<Place>> ways;
  bool moves = false;  // each second call has its arguments in other bases

  explicit Trial(uint64_t seed) {
    std::mt19937_64 random(seed);
    constexpr DType dtypes[] = {f32, f32, f16, bf16, f64, i64};
    constexpr int64_t sizes[] = {8, 8, 8, 1, 0, -1};
    dtype = dtypes[random() % 6];
    size = sizes[random() % 6];
    const auto place = [&] { return Place{random() % 6, static_cast<int64_t>(random() % 7) * 4}; };
    outside = place();
    for (size_t i = 0, count = 2 + random() % 6; i < count; ++i)
      steps.push_back({static_cast<uint32_t>(random() % 8), static_cast<uint32_t>(random() % 16),
                       static_cast<uint32_t>(random() % 16)});
    for (size_t i = 0, count = 1 + random() % 3; i < count; ++i) {
      ways.push_back({place(), place(), place()});
      // Often in the same way in another base, or some of them.
      if (const uint64_t which = i > 0 ? random() % 4 : 3; which < 3) {
        ways[i] = ways[0];
        for (auto& each : ways[i])
          if (which < 2 || random() % 2) each.base ^= 1;
      }
      moves = random() % 2;
    }
  }
};

void compare(const Trial& trial, const std::string& name) {
  const NoGrad guard;
  Scene plain(trial.dtype), other(trial.dtype);
  const auto function = [&](const Scene& scene, const std::vector<Tensor>& arguments) {
    std::vector<Tensor> values = arguments;
    values.push_back(scene.at(trial.outside, trial.size));
    return run(trial.steps, values);
  };
  auto compiled = compile([&](const Tensor& x, const Tensor& y, const Tensor& z) {
    return function(other, {x, y, z});
  });
  for (size_t call = 0; call < 14; ++call) {
    const auto& way = trial.ways[call / 4 % trial.ways.size()];
    const auto at = [&](const Scene& scene, size_t k) {
      Place place = way[k];
      if (trial.moves) place.base ^= call % 2;
      return scene.at(place, trial.size);
    };
    const auto expected = function(plain, {at(plain, 0), at(plain, 1), at(plain, 2)});
    const auto found = compiled(at(other, 0), at(other, 1), at(other, 2));
    BOOST_TEST(same_bits(found, expected), name << ", results of call " << call);
    BOOST_TEST(same_bits(other.all(), plain.all()), name << ", memory after call " << call);
    if (trial.size != 0)  // a change of no elements queues nothing that a program could count
      BOOST_TEST(other.versions() == plain.versions(), name << ", versions after call " << call);
    plain.fill(), other.fill();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_functions_of_tensors_that_share_memory) {
  const test::Deadline deadline;
  test::each_point(20'000, 400, deadline, [&](int64_t n) {
    compare(Trial(static_cast<uint64_t>(n)), "function " + std::to_string(n));
    return n < 20'000;
  });
}

BOOST_AUTO_TEST_SUITE_END()
