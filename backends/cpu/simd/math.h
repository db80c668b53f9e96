// Branch-free elementary functions that compilers vectorise when they stand in a plain loop over
// arrays. Results are within 3 units in the last place, denormals included; NaN and infinity as the
// C library's. sin, cos and erf in f64 are the C library's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tenon::cpu::math {

template <class T>
struct Bits;
template <>
struct Bits<float> {
  using Int = int32_t;
  using Word = uint32_t;
  static constexpr int kMantissa = 23;
  static constexpr Int kBias = 127, kRootHalf = 0x3f330000;  // about 0.7
  static constexpr float kRound =
      0x1.8p23f;  // adding it rounds to an integer, kept in the low bits
  static constexpr float kLn2Hi = 0.693145752f, kLn2Lo = 1.42860682e-6f;
  static constexpr float kExpLow = -104.0f, kExpHigh = 89.0f;
};
template <>
struct Bits<double> {
  using Int = int64_t;
  using Word = uint64_t;
  static constexpr int kMantissa = 52;
  static constexpr Int kBias = 1023, kRootHalf = 0x3fe6600000000000;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kLn2Hi = 0.693147180369123816490, kLn2Lo = 1.90821492927058770002e-10;
  static constexpr double kExpLow = -746.0, kExpHigh = 710.0;
};

// x = n ln2 + r with |r| <= ln2 / 2; gives expm1(r) by Taylor's series and n in the low bits of the
// result's first member.
template <class T>
inline T reduced_expm1(T x, typename Bits<T>::Int& n) {
  using B = Bits<T>;
  T k = x * T(1.442695040888963407) + B::kRound;
  n = static_cast<typename B::Int>(std::bit_cast<typename B::Word>(k) -
                                   std::bit_cast<typename B::Word>(B::kRound));  // wraps for NaN
  k -= B::kRound;
  T r = (x - k * B::kLn2Hi) - k * B::kLn2Lo;
  T p;
  if constexpr (sizeof(T) == 4) {
    p = T(1.0 / 5040);
  } else {
    p = T(1.0 / 6227020800);
    p = p * r + T(1.0 / 479001600);
    p = p * r + T(1.0 / 39916800);
    p = p * r + T(1.0 / 3628800);
    p = p * r + T(1.0 / 362880);
    p = p * r + T(1.0 / 40320);
    p = p * r + T(1.0 / 5040);
  }
  p = p * r + T(1.0 / 720);
  p = p * r + T(1.0 / 120);
  p = p * r + T(1.0 / 24);
  p = p * r + T(1.0 / 6);
  p = p * r + T(0.5);
  return p * (r * r) + r;
}

// 2^n for n in the range of normal numbers.
template <class T>
inline T power_of_two(typename Bits<T>::Int n) {
  using Word = typename Bits<T>::Word;
  return std::bit_cast<T>((static_cast<Word>(n) + Word(Bits<T>::kBias)) << Bits<T>::kMantissa);
}

template <class T>
inline T exp(T x) {
  using B = Bits<T>;
  // Comparisons that are false for NaN keep it.
  x = x < B::kExpLow ? B::kExpLow : x;
  x = x > B::kExpHigh ? B::kExpHigh : x;
  using Int = typename B::Int;
  using Word = typename B::Word;
  Int n;
  T p = reduced_expm1(x, n);
  // Two steps, so that denormal results and those next to infinity come out right.
  T whole = T(1) + p;
  if constexpr (sizeof(T) == 4) {
    Int half = n >> 1, rest = static_cast<Int>(Word(n) - Word(half));
    return whole * power_of_two<T>(half) * power_of_two<T>(rest);
  } else {
    // There is no arithmetic shift of 64-bit lanes below AVX-512: halve what is made positive
    // first.
    Int half = static_cast<Int>((Word(n) + 2048) >> 1) - 1024,
        rest = static_cast<Int>(Word(n) - Word(half));
    return whole * power_of_two<T>(half) * power_of_two<T>(rest);
  }
}

template <class T>
inline T log(T x) {
  using B = Bits<T>;
  using Int = typename B::Int;
  using Word = typename B::Word;
  constexpr T smallest = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);
  constexpr T lift = sizeof(T) == 4 ? T(0x1p24) : T(0x1p54);
  bool tiny = x < smallest;
  T y = tiny ? x * lift : x;
  Word bits = std::bit_cast<Word>(
      y);  // unsigned: wraps for negative x and NaN, whose results are replaced below
  T e, m;
  if constexpr (sizeof(T) == 4) {
    Int k = static_cast<Int>(bits - Word(B::kRootHalf)) >> B::kMantissa;
    m = std::bit_cast<T>(bits - (static_cast<Word>(k) << B::kMantissa));
    e = static_cast<T>(k);
  } else {
    // Exponent to double through the low bits of 2^52, which needs no 64-bit conversion.
    uint64_t k = (bits - Word(B::kRootHalf) + (Word(2048) << 52)) >> 52;
    m = std::bit_cast<T>(bits - ((k - 2048) << 52));
    e = std::bit_cast<T>(k | 0x4330000000000000) - (0x1p52 + 2048);
  }
  e = tiny ? e - (sizeof(T) == 4 ? T(24) : T(54)) : e;
  // log m = 2 atanh(s)
  T f = m - T(1), s = f / (m + T(1)), z = s * s, p;
  if constexpr (sizeof(T) == 4) {
    p = T(2.0 / 9);
  } else {
    p = T(2.0 / 23);
    p = p * z + T(2.0 / 21);
    p = p * z + T(2.0 / 19);
    p = p * z + T(2.0 / 17);
    p = p * z + T(2.0 / 15);
    p = p * z + T(2.0 / 13);
    p = p * z + T(2.0 / 11);
    p = p * z + T(2.0 / 9);
  }
  p = p * z + T(2.0 / 7);
  p = p * z + T(2.0 / 5);
  p = p * z + T(2.0 / 3);
  // 2s = f - s f, and the rounding of s matters less in the small product.
  T result = e * B::kLn2Hi + (f - (s * (f - z * p) - e * B::kLn2Lo));
  result = x == T(0) ? -T(INFINITY) : result;
  result = x < T(0) ? T(NAN) : result;
  result = x == T(INFINITY) ? x : result;
  return x != x ? x : result;
}

template <class T>
inline T tanh(T x) {
  constexpr T limit = sizeof(T) == 4 ? T(10) : T(20);
  T a = std::fabs(x);
  a = a > limit ? limit : a;
  typename Bits<T>::Int n;
  T p = reduced_expm1(a + a, n), scale = power_of_two<T>(n);
  T e = scale * p + (scale - T(1));  // expm1(2a)
  return std::copysign(e / (e + T(2)), x);
}

template <class T>
inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

// Below 1 a polynomial in x², beyond it 1 - exp(polynomial); both fitted to errors below 2e-9.
inline float erf(float x) {
  float a = std::fabs(x), z = x * x;
  float small = 7.889119583618076e-05f;
  small = small * z - 0.0008020841294218312f;
  small = small * z + 0.005189535340841117f;
  small = small * z - 0.026854444592617113f;
  small = small * z + 0.11283600176272093f;
  small = small * z - 0.37612627135966775f;
  small = small * z + 0.1283791659137514f;
  small = small * x + x;
  float t = a > 4.0f ? 4.0f : a;
  float g = 0.0001888236137343346f;
  g = g * t - 0.002972442028373502f;
  g = g * t + 0.021940430676627397f;
  g = g * t - 0.10332734927380412f;
  g = g * t - 0.637883084742085f;
  g = g * t - 1.1272514565005767f;
  g = g * t - 0.0003004283496537141f;
  int32_t n;
  float p = reduced_expm1(g, n);
  float scale = power_of_two<float>(n);
  float large = std::copysign(1.0f - (scale * p + scale), x);
  return a < 1.0f ? small : large;
}
inline double erf(double x) { return std::erf(x); }

// sin(x + quarter_turns * pi/2) for |x| < kTrigLimit; the reduction runs in f64, so it is exact
// enough for every float there.
inline constexpr float kTrigLimit = 0x1p20f;
inline float sin_quarter(float x, int32_t quarter_turns) {
  double k = static_cast<double>(x) * 0.63661977236758134308 + 0x1.8p52;
  uint32_t q =
      static_cast<uint32_t>(std::bit_cast<uint64_t>(k)) + static_cast<uint32_t>(quarter_turns);
  k -= 0x1.8p52;
  // pi/2 in 33 bits and the rest: k * high is exact.
  float t = static_cast<float>((x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11);
  float z = t * t;
  float s = 1.0f / 362880;
  s = s * z - 1.0f / 5040;
  s = s * z + 1.0f / 120;
  s = s * z - 1.0f / 6;
  s = s * z * t + t;
  float c = -1.0f / 3628800;
  c = c * z + 1.0f / 40320;
  c = c * z - 1.0f / 720;
  c = c * z + 1.0f / 24;
  c = c * z - 0.5f;
  c = c * z + 1.0f;
  float r = (q & 1) ? c : s;
  return (q & 2) ? -r : r;
}

}  // namespace tenon::cpu::math
