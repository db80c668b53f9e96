// What the cuda plugin asks of the vendor's libraries, asked of the real ones: descriptors, and
// cuDNN's choice of engines for a device that is described instead of opened. No device is needed;
// where a library is not installed the test says so and passes.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <tenon/plugins/sdk/sdk.h>

#include "kernels/convolution/conv_dnn.h"
#include "vendor/blas.h"
#include "vendor/dnn.h"

using namespace tenon;
using namespace tenon::cuda;

namespace {

// The descriptor of an H200, as cuDNN writes it.
constexpr const char* kH200 = R"({
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "multiProcessorCount": 132,
  "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0,
  "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": 150000000000, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
  "l2CacheSize": 62914560, "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000, "deviceName": "NVIDIA H200"})";

// The reason why a library cannot be used; empty where it can.
template <class F>
std::string why_not(F&& f) {
  try {
    f();
    return "";
  } catch (const sdk::Error& e) {
    BOOST_TEST(e.code() == TN_CODE_UNAVAILABLE);
    return e.what();
  }
}

bool has_cudnn(size_t least = 90000) {
  std::string why = why_not([] { cudnn(); });
  if (why.empty() && cudnn().cudnnGetVersion() < least)
    why = "cuDNN is older than " + std::to_string(least);
  if (!why.empty()) BOOST_TEST_MESSAGE("skipped: " << why);
  return why.empty();
}

ConvShape conv_of(tn_dtype dtype, int64_t c, int64_t size, int64_t o, int64_t kernel,
                  int64_t groups, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t out = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  return {dtype,  8,          c,          size,   size,   o,       kernel,  kernel,   out,     out,
          groups, c / groups, o / groups, stride, stride, padding, padding, dilation, dilation};
}

std::vector<ConvShape> convolutions(tn_dtype t) {
  return {conv_of(t, 1, 28, 6, 5, 1, 1, 2, 1),   conv_of(t, 6, 14, 16, 5, 1, 1, 0, 1),
          conv_of(t, 64, 56, 64, 3, 1, 1, 1, 1), conv_of(t, 64, 56, 32, 1, 1, 1, 0, 1),
          conv_of(t, 3, 64, 16, 7, 1, 2, 3, 1),  conv_of(t, 32, 28, 32, 3, 32, 1, 1, 1),
          conv_of(t, 32, 28, 64, 3, 4, 2, 1, 1), conv_of(t, 16, 28, 8, 3, 1, 1, 2, 2),
          conv_of(t, 1, 3, 1, 3, 1, 1, 0, 1)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(cublaslt_takes_the_descriptors) {
  if (const std::string why = why_not([] { cublaslt(); }); !why.empty()) {
    BOOST_TEST_MESSAGE("skipped: " << why);
    return;
  }
  for (tn_dtype dtype : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (bool bias : {false, true})
      for (bool relu : {false, true}) {
        Product p{.dtype = dtype,
                  .m = 5,
                  .n = 3,
                  .k = 7,
                  .batch = 4,
                  .a = {7, 5, 7, 35, CUBLAS_OP_N},
                  .b = {7, 3, 9, 0, CUBLAS_OP_T}};
        p.relu = relu;
        p.tf32 = dtype == TN_F32;
        auto operation = blas::operation_of(p, bias);
        blas::set_bias(operation, &p);
        BOOST_TEST(blas::layout_of(p, p.a).get() != nullptr);
        BOOST_TEST(blas::result_layout(p).get() != nullptr);
        BOOST_TEST(blas::preference_of(p, 32 << 20, 16).get() != nullptr);
      }
}

BOOST_AUTO_TEST_CASE(cudnn_takes_the_graphs) {
  if (!has_cudnn(91900)) return;  // before that a graph needed a device
  const DnnTarget no_device;
  for (tn_dtype dtype : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (auto& shape : convolutions(dtype))
      for (auto kind : {ConvKind::forward, ConvKind::backward_input, ConvKind::backward_weight}) {
        BOOST_CHECK_NO_THROW(conv_graph(no_device, kind, shape, false, 16));
        if (kind == ConvKind::forward)
          BOOST_CHECK_NO_THROW(
              conv_graph(no_device, kind, shape, true, 2 * sdk::dtype_size(dtype)));
      }
  // Layouts that do not fit are refused by the library, so it did look at them.
  auto wrong = conv_of(TN_F32, 3, 8, 4, 3, 1, 1, 0, 1);
  wrong.oh += 1;
  BOOST_CHECK_THROW(conv_graph(no_device, ConvKind::forward, wrong, false, 16), sdk::Error);
}

// Every convolution that the operator offers has an engine on an H200, at both alignments, and the
// engine keeps to the rules.
BOOST_AUTO_TEST_CASE(cudnn_has_engines) {
  if (!has_cudnn(90800)) return;  // devices can be described since then
  const auto target = DnnTarget::described(kH200);
  constexpr uint32_t tensor_cores = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                     random = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  uint32_t fast_notes = 0;
  for (tn_dtype dtype : {TN_F32, TN_F64, TN_F16, TN_BF16})
    for (auto& shape : convolutions(dtype))
      for (auto kind : {ConvKind::forward, ConvKind::backward_input, ConvKind::backward_weight})
        for (int64_t alignment : {int64_t{16}, static_cast<int64_t>(sdk::dtype_size(dtype))})
          for (bool bias : {false, true}) {
            if (bias && kind != ConvKind::forward) continue;
            const auto plan = plan_conv_dnn(target, kind, shape, bias, alignment);
            BOOST_TEST((plan.notes() & random) == 0u);
            if (dtype == TN_F32) BOOST_TEST((plan.notes() & tensor_cores) == 0u);
            ConvShape fast = shape;
            fast.tf32 = true;
            if (dtype == TN_F32)
              fast_notes |= plan_conv_dnn(target, kind, fast, bias, alignment).notes();
          }
  BOOST_TEST((fast_notes & tensor_cores) != 0u);  // asked for, TF32 is used
}

BOOST_AUTO_TEST_CASE(no_engine_is_a_reason) {
  if (!has_cudnn(90800)) return;
  const auto target = DnnTarget::described(kH200);
  const auto shape = conv_of(TN_F32, 64, 56, 64, 3, 1, 1, 1, 1);
  const auto graph = conv_graph(target, ConvKind::forward, shape, false, 16);
  try {
    DnnPlan plan(target, graph, {.refused_notes = ~0u, .workspace_bytes = -1},
                 {kConvX, kConvWeight, kConvY});
    BOOST_FAIL("an engine keeps to rules that refuse every one");
  } catch (const sdk::Error& e) {
    BOOST_TEST(e.code() == TN_CODE_UNSUPPORTED);
    BOOST_TEST(std::string(e.what()).find("cuDNN has no engine") != std::string::npos, e.what());
  }
}
