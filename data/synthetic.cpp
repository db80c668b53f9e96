#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include <tenon/core/base/number_text.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/data/random.h>
#include <tenon/data/synthetic.h>

namespace tenon::data {
namespace {

constexpr int kSide = 28;
constexpr int64_t kFigures = 10;
constexpr std::array<std::string_view, kFigures> kNames = {
    "disc", "ring", "square", "frame", "triangle", "plus", "cross", "bars", "diamond", "crescent"};

struct Point {
  float x, y;
};
float length(Point p) { return std::hypot(p.x, p.y); }

// Returns the signed distance to a box around the origin whose sides are 2 a and 2 b.
float box(Point p, float a, float b) {
  const Point q{std::abs(p.x) - a, std::abs(p.y) - b};
  return length({std::max(q.x, 0.f), std::max(q.y, 0.f)}) + std::min(std::max(q.x, q.y), 0.f);
}

// Returns the distance of p to the outline of shape `label` of radius r, which is negative inside.
// `stroke` is half the width of lines.
float distance(int64_t label, Point p, float r, float stroke) {
  constexpr float half = std::numbers::sqrt2_v<float> / 2;
  const Point turned{(p.x + p.y) * half, (p.x - p.y) * half};
  switch (label) {
    case 0:
      return length(p) - r;
    case 1:
      return std::abs(length(p) - r) - stroke;
    case 2:
      return box(p, r * 0.85f, r * 0.85f);
    case 3:
      return std::abs(box(p, r * 0.85f, r * 0.85f)) - stroke;
    case 4:
      return std::max({p.y - r * 0.7f, std::abs(p.x) * 0.87f - p.y * 0.5f - r * 0.6f});
    case 5:
      return std::min(box(p, r, stroke), box(p, stroke, r));
    case 6:
      return std::min(box(turned, r * 1.1f, stroke), box(turned, stroke, r * 1.1f));
    case 7:
      return std::min({box({p.x, p.y - r * 0.8f}, r, stroke), box(p, r, stroke),
                       box({p.x, p.y + r * 0.8f}, r, stroke)});
    case 8:
      return box(turned, r * 0.75f, r * 0.75f);
    default:
      return std::max(length(p) - r, r * 0.75f - length({p.x - r * 0.5f, p.y}));
  }
}

// Returns an approximately normal number of variance 1: the sum of four uniform ones.
float noise(Random& random) {
  const uint64_t bits = random.next();
  const float sum = static_cast<float>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) +
                                       (bits >> 32 & 0xFFFF) + (bits >> 48));
  return (sum / 65535.f - 2.f) * 1.7320508f;
}

void draw(uint8_t* pixels, int64_t label, Random& random, float noise_level) {
  const float r = random.uniform(6.f, 9.5f), stroke = random.uniform(0.8f, 1.5f);
  const float margin = r + 0.5f, cx = random.uniform(margin, kSide - margin),
              cy = random.uniform(margin, kSide - margin);
  const float angle = random.uniform(-0.2f, 0.2f), cosine = std::cos(angle), sine = std::sin(angle);
  const float ink = random.uniform(0.6f, 1.f), ground = random.uniform(0.f, 0.2f);
  // A line through the image that does not belong to the shape.
  const float tilt = random.uniform(0.f, std::numbers::pi_v<float>), across = std::cos(tilt),
              down = std::sin(tilt);
  const float reach = random.uniform(4.f, 24.f), stray = random.uniform(0.f, 0.4f);
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      const Point p{static_cast<float>(x) + 0.5f - cx, static_cast<float>(y) + 0.5f - cy};
      const float d =
          distance(label, {p.x * cosine + p.y * sine, p.y * cosine - p.x * sine}, r, stroke);
      const float line =
          std::abs(static_cast<float>(x) * across + static_cast<float>(y) * down - reach) - 0.5f;
      const float shape = std::clamp(0.5f - d, 0.f, 1.f) * (ink - ground),
                  mark = std::clamp(0.5f - line, 0.f, 1.f) * stray;
      const float value = ground + std::max(shape, mark) + noise_level * noise(random);
      pixels[y * kSide + x] =
          static_cast<uint8_t>(std::lround(std::clamp(value, 0.f, 1.f) * 255.f));
    }
}

}  // namespace

TensorDataset synthetic(int64_t count, const SyntheticOptions& options) {
  if (count < 0)
    throw ValueError(fmt::format("synthetic: count has to be at least 0, but is {}", count));
  if (!(options.noise >= 0 && std::isfinite(options.noise)))
    throw ValueError(fmt::format("synthetic: noise has to be finite and at least 0, but is {}",
                                 number_text(options.noise)));
  HostTensor images = make_host_tensor({count, 1, kSide, kSide}, DType::u8),
             labels = make_host_tensor({count}, DType::i64);
  const std::vector<int64_t> order = permutation(count, options.seed, ~uint64_t{0});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = order[static_cast<size_t>(i)] % kFigures;
    Random random(options.seed, static_cast<uint64_t>(i));
    static_cast<int64_t*>(labels.values)[i] = label;
    draw(static_cast<uint8_t*>(images.values) + i * kSide * kSide, label, random,
         static_cast<float>(options.noise));
  }
  return TensorDataset(images.tensor, labels.tensor).convert(options.pixels);
}

std::string_view synthetic_class(int64_t label) {
  if (label < 0 || label >= kFigures)
    throw IndexError(
        fmt::format("synthetic_class: there is no class {}; classes are 0 to 9", label));
  return kNames[static_cast<size_t>(label)];
}

}  // namespace tenon::data
