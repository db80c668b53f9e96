// The layout of ABI 1.0, and of what 1.1 and 1.2 added, is fixed: a plugin compiled long ago must
// find every field where it was. New fields go to the end of a struct; then its size here may grow,
// and no offset may change.
#include <boost/test/unit_test.hpp>

#include <tenon/core/dispatch/abi_dtypes.h>
#include <tenon/plugins/abi/abi.h>

BOOST_AUTO_TEST_SUITE(abi_layout_test)

static_assert(sizeof(void*) == 8, "the numbers below are those of 64-bit machines");

#define CHECK_OFFSET(type, field, expected) BOOST_TEST(offsetof(type, field) == size_t{expected})

BOOST_AUTO_TEST_CASE(errors_and_descriptors) {
  CHECK_OFFSET(tn_error, code, 8);
  CHECK_OFFSET(tn_error, message, 16);
  CHECK_OFFSET(tn_error, destroy, 40);
  BOOST_TEST(sizeof(tn_key_value) == 16u);
  CHECK_OFFSET(tn_tensor_desc, dtype, 8);
  CHECK_OFFSET(tn_tensor_desc, rank, 12);
  CHECK_OFFSET(tn_tensor_desc, shape, 16);
  CHECK_OFFSET(tn_tensor_desc, strides, 80);
  CHECK_OFFSET(tn_attr, kind, 16);
  CHECK_OFFSET(tn_attr, i, 24);
  CHECK_OFFSET(tn_attr, ints, 56);
  BOOST_TEST(sizeof(tn_scalar) == 8u);
}

BOOST_AUTO_TEST_CASE(plans) {
  CHECK_OFFSET(tn_op_request, op, 8);
  CHECK_OFFSET(tn_op_request, inputs, 24);
  CHECK_OFFSET(tn_op_request, outputs, 40);
  CHECK_OFFSET(tn_op_request, aliases, 48);
  CHECK_OFFSET(tn_op_request, attrs, 64);
  CHECK_OFFSET(tn_op_request, num_scalars, 72);
  CHECK_OFFSET(tn_run, scalars, 24);
  CHECK_OFFSET(tn_run, stream, 40);
  CHECK_OFFSET(tn_run, num_inputs, 48);
  CHECK_OFFSET(tn_run, num_outputs, 56);
  CHECK_OFFSET(tn_run, num_scalars, 64);
  CHECK_OFFSET(tn_run, input_versions, 72);
  CHECK_OFFSET(tn_plan, run, 8);
  CHECK_OFFSET(tn_plan, destroy, 16);
  CHECK_OFFSET(tn_plan, workspace_bytes, 24);
  CHECK_OFFSET(tn_plan, cost_ns, 32);
  CHECK_OFFSET(tn_plan, flags, 40);
}

BOOST_AUTO_TEST_CASE(devices_and_memory) {
  CHECK_OFFSET(tn_memory_kind, flags, 16);
  CHECK_OFFSET(tn_memory_kind, alignment, 24);
  CHECK_OFFSET(tn_memory_kind, granularity, 32);
  CHECK_OFFSET(tn_device_info, flags, 8);
  CHECK_OFFSET(tn_device_info, name, 12);
  CHECK_OFFSET(tn_device_info, memory_total, 144);
  CHECK_OFFSET(tn_device_info, threads, 160);
  CHECK_OFFSET(tn_device_info, reserved, 164);  // padding of 1.0: no field may begin in it
  CHECK_OFFSET(tn_device_info, architecture, 168);
  CHECK_OFFSET(tn_device_info, driver, 200);
  CHECK_OFFSET(tn_copy, bytes, 24);
  CHECK_OFFSET(tn_copy, src_device, 40);
}

BOOST_AUTO_TEST_CASE(tables) {
  CHECK_OFFSET(tn_host, context, 16);
  CHECK_OFFSET(tn_host, log, 32);
  CHECK_OFFSET(tn_host, parallel_for, 48);
  CHECK_OFFSET(tn_backend_api, backend, 8);
  CHECK_OFFSET(tn_backend_api, device_count, 16);
  CHECK_OFFSET(tn_backend_api, memory_kinds, 48);
  CHECK_OFFSET(tn_backend_api, stream_create, 72);
  CHECK_OFFSET(tn_backend_api, event_create, 88);
  CHECK_OFFSET(tn_backend_api, event_wait, 128);
  CHECK_OFFSET(tn_backend_api, copy, 136);
  CHECK_OFFSET(tn_backend_api, plan_create, 152);
  CHECK_OFFSET(tn_backend_api, extension, 160);
  CHECK_OFFSET(tn_backend_api, shutdown, 176);
  BOOST_TEST(size_t{TN_BACKEND_API_SIZE_1_0} == 160u);
}

BOOST_AUTO_TEST_CASE(the_query_symbol) {
  CHECK_OFFSET(tn_plugin_info, magic, 8);
  CHECK_OFFSET(tn_plugin_info, abi_major, 16);
  CHECK_OFFSET(tn_plugin_info, name, 24);
  CHECK_OFFSET(tn_plugin_info, kind, 40);
  CHECK_OFFSET(tn_plugin_info, overlays, 48);
  CHECK_OFFSET(tn_plugin_info, init, 64);
  BOOST_TEST(size_t{TN_PLUGIN_INFO_SIZE_1_0} == 72u);
  BOOST_TEST(TN_ABI_MAJOR == 1u);
  BOOST_TEST(TN_ABI_MINOR == 3u);
}

BOOST_AUTO_TEST_CASE(extension_tables) {
  CHECK_OFFSET(tn_collectives, communicator_create, 8);
  CHECK_OFFSET(tn_collectives, broadcast, 32);
  CHECK_OFFSET(tn_collectives, group_begin, 40);
  CHECK_OFFSET(tn_collectives, group_end, 48);
  CHECK_OFFSET(tn_stream_capture, begin, 8);
  CHECK_OFFSET(tn_stream_capture, destroy, 32);
  CHECK_OFFSET(tn_stream_capture, flags, 40);
  CHECK_OFFSET(tn_profiling, range_push, 8);
  CHECK_OFFSET(tn_profiling, elapsed, 24);
}

BOOST_AUTO_TEST_CASE(the_dtypes_of_this_version_are_those_of_the_library) {
  for (int32_t value = 0; value < 32; ++value)
    BOOST_TEST(
        tenon::abi_knows(TN_ABI_MINOR, static_cast<tenon::DType>(value)) == (value <= TN_BOOL),
        "dtype " << value);
}

BOOST_AUTO_TEST_SUITE_END()
