# How tests run in a sanitized build: sets test_prefix ("asan/"), test_launcher and sanitizer_environment.
set(test_prefix "")
set(test_launcher "")
set(sanitizer_environment "")
if(NOT TENON_SANITIZE)
  return()
endif()

if(TENON_SANITIZE MATCHES thread)
  set(test_prefix "tsan/")
else()
  set(test_prefix "asan/")
endif()

# The runtimes of older compilers do not start where the kernel spreads addresses widely; setarch -R stops that, where it is allowed.
find_program(SETARCH setarch)
if(SETARCH)
  execute_process(COMMAND ${SETARCH} -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    set(test_launcher ${SETARCH} -R)
  endif()
endif()

# The leak check stops threads with ptrace, which some containers forbid.
set(leaks 1)
if(TENON_SANITIZE MATCHES address)
  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/probe.cpp "int main() { return 0; }\n")
  try_run(TENON_LEAK_CHECK_RESULT TENON_LEAK_CHECK_COMPILES ${CMAKE_CURRENT_BINARY_DIR}/probe ${CMAKE_CURRENT_BINARY_DIR}/probe.cpp
          LINK_OPTIONS -fsanitize=address COMPILE_DEFINITIONS -fsanitize=address)
  if(NOT TENON_LEAK_CHECK_RESULT EQUAL 0)
    message(WARNING "The leak check does not work here (no ptrace?): the address sanitizer runs without it.")
    set(leaks 0)
  endif()
endif()

# intercept_tls_get_addr=0: GCC 12's runtime takes glibc 2.36's aligned blocks of dynamic thread-locals for others and reads where
# nothing is ("DTLS 10 at …", then signal 11 in the leak check), on machines with AVX-512 state above all.
# allow_addr2line: clang's runtime names functions by llvm-symbolizer, which does not come with it.
# malloc_context_size: to keep the 30 frames that are the default takes a tenth of the time.
set(suppressions ${CMAKE_CURRENT_SOURCE_DIR}/sanitizers)
set(sanitizer_environment
    "ASAN_OPTIONS=allow_addr2line=1:detect_leaks=${leaks}:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:intercept_tls_get_addr=0:allocator_may_return_null=1:malloc_context_size=8"
    "UBSAN_OPTIONS=allow_addr2line=1:print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=allow_addr2line=1:halt_on_error=0:second_deadlock_stack=1:history_size=4"
    "LSAN_OPTIONS=suppressions=${suppressions}/leaks.txt:print_suppressions=0")
