// Layers that add elements around their input, or remove some where a number is negative. `padding`
// is one number for all sides, or two for each dimension, the last dimension first: (left, right,
// top, bottom, front, back). The result has the dtype of the input, and each padded dimension grows
// by its two numbers. Inputs have the shapes that the convolutions take, (N, C, L) or (C, L) for
// one dimension and so on, unless it is said otherwise; another number of dimensions is a
// ShapeError. Constructors throw a ValueError for another number of sizes.
#pragma once

#include <string>

#include <tenon/core/number.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// The part that all layers have: the sizes.
struct TENON_API PadState {
  // Keeps the sizes, for `dims` dimensions; `layer` is the name that errors begin with.
  PadState(const char* layer, size_t dims, const Shape& padding);

  Shape padding;  // two numbers for each dimension

 protected:
  // Returns the padded input. `mode` is "constant", "reflect", "replicate" or "circular".
  Tensor padded(const char* layer, const Tensor& x, const char* mode, Number value = 0) const;
};

// ---- padding by a number: the input may have any dimensions before the padded ones ----

// Adds zeros at both ends of the last dimension: (…, L) becomes (…, L').
struct TENON_API ZeroPad1d final : Module<ZeroPad1d>, PadState {
  ZeroPad1d(const Shape& padding) : PadState("ZeroPad1d", 1, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ZeroPad1d", x, "constant"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Adds zeros around the last two dimensions: (…, H, W) becomes (…, H', W').
struct TENON_API ZeroPad2d final : Module<ZeroPad2d>, PadState {
  ZeroPad2d(const Shape& padding) : PadState("ZeroPad2d", 2, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ZeroPad2d", x, "constant"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Adds zeros around the last three dimensions: (…, D, H, W) becomes (…, D', H', W').
struct TENON_API ZeroPad3d final : Module<ZeroPad3d>, PadState {
  ZeroPad3d(const Shape& padding) : PadState("ZeroPad3d", 3, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ZeroPad3d", x, "constant"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};

// Does as ZeroPad1d, with `value` in place of zero, which the dtype of the input has to hold.
struct TENON_API ConstantPad1d final : Module<ConstantPad1d>, PadState {
  ConstantPad1d(const Shape& padding, Number value)
      : PadState("ConstantPad1d", 1, padding), value(value) {}
  Tensor forward(const Tensor& x) const { return padded("ConstantPad1d", x, "constant", value); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Number value;
};
// Does as ZeroPad2d, with `value` in place of zero, which the dtype of the input has to hold.
struct TENON_API ConstantPad2d final : Module<ConstantPad2d>, PadState {
  ConstantPad2d(const Shape& padding, Number value)
      : PadState("ConstantPad2d", 2, padding), value(value) {}
  Tensor forward(const Tensor& x) const { return padded("ConstantPad2d", x, "constant", value); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Number value;
};
// Does as ZeroPad3d, with `value` in place of zero, which the dtype of the input has to hold.
struct TENON_API ConstantPad3d final : Module<ConstantPad3d>, PadState {
  ConstantPad3d(const Shape& padding, Number value)
      : PadState("ConstantPad3d", 3, padding), value(value) {}
  Tensor forward(const Tensor& x) const { return padded("ConstantPad3d", x, "constant", value); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Number value;
};

// ---- padding by a mirror image, in which the element at the border does not occur again ----

// Adds a mirror image of the input at both ends of lines (N, C, L) or (C, L). A padding has to be
// smaller than the dimension, otherwise a call throws a ShapeError.
struct TENON_API ReflectionPad1d final : Module<ReflectionPad1d>, PadState {
  ReflectionPad1d(const Shape& padding) : PadState("ReflectionPad1d", 1, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ReflectionPad1d", x, "reflect"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Does the same around images (N, C, H, W) or (C, H, W).
struct TENON_API ReflectionPad2d final : Module<ReflectionPad2d>, PadState {
  ReflectionPad2d(const Shape& padding) : PadState("ReflectionPad2d", 2, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ReflectionPad2d", x, "reflect"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Does the same around volumes (N, C, D, H, W) or (C, D, H, W).
struct TENON_API ReflectionPad3d final : Module<ReflectionPad3d>, PadState {
  ReflectionPad3d(const Shape& padding) : PadState("ReflectionPad3d", 3, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ReflectionPad3d", x, "reflect"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};

// ---- padding by the border ----

// Adds copies of the element at the border, at both ends of lines (N, C, L) or (C, L).
struct TENON_API ReplicationPad1d final : Module<ReplicationPad1d>, PadState {
  ReplicationPad1d(const Shape& padding) : PadState("ReplicationPad1d", 1, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ReplicationPad1d", x, "replicate"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Does the same around images (N, C, H, W) or (C, H, W).
struct TENON_API ReplicationPad2d final : Module<ReplicationPad2d>, PadState {
  ReplicationPad2d(const Shape& padding) : PadState("ReplicationPad2d", 2, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ReplicationPad2d", x, "replicate"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Does the same around volumes (N, C, D, H, W) or (C, D, H, W).
struct TENON_API ReplicationPad3d final : Module<ReplicationPad3d>, PadState {
  ReplicationPad3d(const Shape& padding) : PadState("ReplicationPad3d", 3, padding) {}
  Tensor forward(const Tensor& x) const { return padded("ReplicationPad3d", x, "replicate"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};

// ---- padding by the other end ----

// Adds the elements of the other end, at both ends of lines (N, C, L) or (C, L). A padding has to
// be at most as large as the dimension, otherwise a call throws a ShapeError.
struct TENON_API CircularPad1d final : Module<CircularPad1d>, PadState {
  CircularPad1d(const Shape& padding) : PadState("CircularPad1d", 1, padding) {}
  Tensor forward(const Tensor& x) const { return padded("CircularPad1d", x, "circular"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Does the same around images (N, C, H, W) or (C, H, W).
struct TENON_API CircularPad2d final : Module<CircularPad2d>, PadState {
  CircularPad2d(const Shape& padding) : PadState("CircularPad2d", 2, padding) {}
  Tensor forward(const Tensor& x) const { return padded("CircularPad2d", x, "circular"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};
// Does the same around volumes (N, C, D, H, W) or (C, D, H, W).
struct TENON_API CircularPad3d final : Module<CircularPad3d>, PadState {
  CircularPad3d(const Shape& padding) : PadState("CircularPad3d", 3, padding) {}
  Tensor forward(const Tensor& x) const { return padded("CircularPad3d", x, "circular"); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const { return padding.str(); }
};

}  // namespace tenon::nn
