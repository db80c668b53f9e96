#include <algorithm>
#include <cmath>
#include <numbers>

#include <tenon/core/ops/pooling/taps.h>

namespace tenon {

namespace {

// How many elements of x lie below one of the result.
double step_of(const Resize& r) {
  if (r.align_corners)
    return r.result > 1 ? static_cast<double>(r.size - 1) / static_cast<double>(r.result - 1) : 0;
  return r.scale ? 1 / *r.scale : static_cast<double>(r.size) / static_cast<double>(r.result);
}

double coordinate(const Resize& r, double step, int64_t i) {
  const auto at = static_cast<double>(i);
  return r.align_corners ? step * at : step * (at + 0.5) - 0.5;
}

// The element at or before a coordinate, and how far the coordinate is from it to the next.
struct Position {
  int64_t before;
  double part;
  Position(double at, int64_t size)
      : before(static_cast<int64_t>(std::min(std::floor(at), static_cast<double>(size - 1)))),
        part(std::clamp(at - static_cast<double>(before), 0.0, 1.0)) {}
};

Taps empty_taps(size_t count, int64_t result) {
  const auto n = static_cast<size_t>(result);
  return {{count, std::vector<int64_t>(n)}, {count, std::vector<double>(n)}};
}

// The kernel of cubic convolution (Keys, 1981) at the distance x.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

double sinc(double x) {
  x *= std::numbers::pi;
  return x == 0 ? 1 : std::sin(x) / x;
}

double filtered(Filter filter, double x) {
  switch (filter) {
    case Filter::linear:
      return std::max(0.0, 1 - std::abs(x));
    case Filter::cubic:
      return cubic(x, -0.5);
    case Filter::lanczos:
      break;
  }
  return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

// How far the filter reaches.
double radius(Filter filter) {
  return filter == Filter::linear ? 1 : filter == Filter::cubic ? 2 : 3;
}

}  // namespace

Taps linear_taps(const Resize& r) {
  Taps taps = empty_taps(2, r.result);
  const double step = step_of(r);
  for (int64_t i = 0; i < r.result; ++i) {
    const Position p(std::max(coordinate(r, step, i), 0.0), r.size);
    const auto at = static_cast<size_t>(i);
    taps.place[0][at] = p.before;
    taps.place[1][at] = std::min(p.before + 1, r.size - 1);
    taps.weight[0][at] = 1 - p.part;
    taps.weight[1][at] = p.part;
  }
  return taps;
}

Taps cubic_taps(const Resize& r) {
  Taps taps = empty_taps(4, r.result);
  const double step = step_of(r);
  for (int64_t i = 0; i < r.result; ++i) {
    const Position p(coordinate(r, step, i), r.size);
    for (size_t k = 0; k < 4; ++k) {
      const auto offset = static_cast<int64_t>(k) - 1;
      taps.place[k][static_cast<size_t>(i)] = std::clamp<int64_t>(p.before + offset, 0, r.size - 1);
      taps.weight[k][static_cast<size_t>(i)] = cubic(p.part - static_cast<double>(offset), -0.75);
    }
  }
  return taps;
}

Taps antialias_taps(const Resize& r, Filter filter) {
  const double step = step_of(r), reach = radius(filter) * std::max(step, 1.0),
               inverse = 1 / std::max(step, 1.0), last = static_cast<double>(r.size);
  struct Window {
    int64_t begin, end;
  };
  std::vector<Window> windows;
  int64_t most = 1;
  for (int64_t i = 0; i < r.result; ++i) {
    const double centre = step * (static_cast<double>(i) + 0.5);
    const auto begin = static_cast<int64_t>(std::clamp(centre - reach + 0.5, 0.0, last - 1)),
               end = static_cast<int64_t>(std::clamp(centre + reach + 0.5, 0.0, last));
    windows.push_back({begin, std::max(end, begin + 1)});
    most = std::max(most, windows.back().end - begin);
  }
  Taps taps = empty_taps(static_cast<size_t>(most), r.result);
  std::vector<double> weights;
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto [begin, end] = windows[i];
    const double centre = step * (static_cast<double>(i) + 0.5);
    double sum = 0;
    weights.clear();
    for (int64_t j = begin; j < end; ++j) {
      weights.push_back(filtered(filter, (static_cast<double>(j) - centre + 0.5) * inverse));
      sum += weights.back();
    }
    // A smaller window takes its last element several times, each time with a part of its weight:
    // with a weight of 0 an infinite element would become NaN.
    const auto repeated = static_cast<double>(most - (end - begin) + 1);
    for (size_t k = 0; k < taps.count(); ++k) {
      const size_t j = std::min(k, weights.size() - 1);
      const double weight = sum != 0 ? weights[j] / sum : weights[j];
      taps.place[k][i] = begin + static_cast<int64_t>(j);
      taps.weight[k][i] = j + 1 == weights.size() ? weight / repeated : weight;
    }
  }
  return taps;
}

std::vector<int64_t> nearest_places(const Resize& r, bool exact, bool halves) {
  std::vector<int64_t> places;
  const float step = r.scale ? static_cast<float>(1 / *r.scale)
                             : static_cast<float>(r.size) / static_cast<float>(r.result);
  for (int64_t i = 0; i < r.result; ++i) {
    const auto at = exact ? static_cast<float>((static_cast<double>(i) + 0.5) * step)
                          : static_cast<float>(i) * step;
    int64_t place = static_cast<int64_t>(std::min(std::floor(at), static_cast<float>(r.size)));
    if (halves && r.result == r.size) place = i;
    if (halves && r.result == 2 * r.size) place = i / 2;
    places.push_back(std::min(place, r.size - 1));
  }
  return places;
}

}  // namespace tenon
