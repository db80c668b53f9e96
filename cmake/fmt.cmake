# {fmt}, with which messages are put together: nobody who uses Tenon needs it. It is compiled once, into `tenon_fmt`, which is
# linked PRIVATE: as headers only it would be compiled again with each file (3 s of 4 in a release build, 7 of 8 under the
# sanitizers), and libfmt.so would be one more library to install. Write `#include <fmt/core.h>` and fmt::format().
find_package(fmt 9 REQUIRED)
get_target_property(includes fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
list(REMOVE_ITEM includes ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
if(fmt_VERSION VERSION_LESS 11)
  add_library(tenon_fmt STATIC cmake/fmt.cpp)
  target_include_directories(tenon_fmt SYSTEM PUBLIC $<BUILD_INTERFACE:${includes}>)
  # Its checks of itself would abort; what Tenon is built with for tests is not its business.
  target_compile_definitions(tenon_fmt PRIVATE NDEBUG)
  if(TENON_SANITIZE)
    target_compile_options(tenon_fmt PRIVATE -fno-sanitize=all)
  endif()
else()
  # What newer versions keep in their library is not known here.
  add_library(tenon_fmt INTERFACE)
  target_link_libraries(tenon_fmt INTERFACE fmt::fmt-header-only)
endif()
