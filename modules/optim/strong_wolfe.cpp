#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/modules/optim/strong_wolfe.h>

namespace tenon::optim {

namespace {

// The lowest point between the bounds of the cubic through two points with their slopes.
double cubic_interpolate(const LinePoint& a, const LinePoint& b, double lowest, double highest) {
  const double d1 = a.gtd + b.gtd - 3 * (a.f - b.f) / (a.t - b.t);
  const double square = d1 * d1 - a.gtd * b.gtd;
  if (!(square >= 0)) return (lowest + highest) / 2;
  const double d2 = std::sqrt(square);
  const double t = a.t <= b.t ? b.t - (b.t - a.t) * ((b.gtd + d2 - d1) / (b.gtd - a.gtd + 2 * d2))
                              : a.t - (a.t - b.t) * ((a.gtd + d2 - d1) / (a.gtd - b.gtd + 2 * d2));
  return std::min(std::max(t, lowest), highest);
}

struct Search {
  const std::function<LinePoint(double)>& evaluate;
  const LinePoint& start;
  const LineSearch& limits;
  int64_t& evaluations;
  int64_t iterations = 0;

  LinePoint at(double t) {
    ++evaluations;
    return evaluate(t);
  }
  bool too_high(const LinePoint& p) const { return p.f > start.f + limits.c1 * p.t * start.gtd; }
  bool is_flat(const LinePoint& p) const { return std::abs(p.gtd) <= -limits.c2 * start.gtd; }

  // Two points with a good one between them, or one that is good.
  std::vector<LinePoint> bracket(double t) {
    LinePoint before = start, now = at(t);
    for (; iterations < limits.max_ls; ++iterations) {
      if (too_high(now) || (iterations > 1 && now.f >= before.f)) return {before, now};
      if (is_flat(now)) return {now};
      if (now.gtd >= 0) return {before, now};
      const double next =
          cubic_interpolate(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::move(now);
      now = at(next);
    }
    return {start, now};
  }

  // A new step in the bracket, away from its ends if the last one was near one already.
  static double divide(const LinePoint& a, const LinePoint& b, bool& near_end) {
    const double lowest = std::min(a.t, b.t), highest = std::max(a.t, b.t),
                 margin = 0.1 * (highest - lowest);
    const double t = cubic_interpolate(a, b, lowest, highest);
    if (std::min(highest - t, t - lowest) >= margin) return near_end = false, t;
    if (!near_end && t < highest && t > lowest) return near_end = true, t;
    near_end = false;
    return std::abs(t - highest) < std::abs(t - lowest) ? highest - margin : lowest + margin;
  }

  LinePoint zoom(LinePoint a, LinePoint b) {
    bool near_end = false;
    LinePoint *low = a.f <= b.f ? &a : &b, *high = low == &a ? &b : &a;
    for (; iterations < limits.max_ls; ++iterations) {
      if (std::abs(b.t - a.t) * limits.d_norm < limits.tolerance_change) break;
      LinePoint now = at(divide(a, b, near_end));
      if (too_high(now) || now.f >= low->f) {
        *high = std::move(now);
        low = a.f <= b.f ? &a : &b, high = low == &a ? &b : &a;
        continue;
      }
      const bool done = is_flat(now);
      if (!done && now.gtd * (high->t - low->t) >= 0) *high = *low;
      *low = std::move(now);
      if (done) break;
    }
    return *low;
  }
};

}  // namespace

LinePoint strong_wolfe(const std::function<LinePoint(double)>& evaluate, const LinePoint& start,
                       double t, const LineSearch& limits, int64_t& evaluations) {
  Search search{evaluate, start, limits, evaluations};
  auto points = search.bracket(t);
  return points.size() == 1 ? points[0] : search.zoom(points[0], points[1]);
}

}  // namespace tenon::optim
