# Run by ctest: see CMakeLists.txt.
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${status}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect text pattern)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "expected \"${pattern}\" in:\n${text}")
  endif()
endfunction()

# Builds the project in `folder` as somebody would who has only the installed copy.
function(build_outside folder)
  get_filename_component(name ${folder} NAME)
  run(${CMAKE_COMMAND} -S ${folder} -B ${work}/${name} -G Ninja -D CMAKE_BUILD_TYPE=Debug -D CMAKE_PREFIX_PATH=${work}/prefix -D CMAKE_C_COMPILER=${c}
      -D CMAKE_CXX_COMPILER=${cxx} -D CMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  run(${CMAKE_COMMAND} --build ${work}/${name})
endfunction()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)

# Nothing but tenon/ on the include path of an application.
file(GLOB installed_headers RELATIVE ${work}/prefix/include ${work}/prefix/include/*)
if(NOT installed_headers STREQUAL "tenon")
  message(FATAL_ERROR "the include folder holds: ${installed_headers}")
endif()

# A package is made from a copy below DESTDIR, which has nothing beside the prefix.
run(${CMAKE_COMMAND} -E env DESTDIR=${work}/staged ${CMAKE_COMMAND} --install ${build} --prefix /usr)
file(GLOB staged RELATIVE ${work}/staged ${work}/staged/*)
if(NOT staged STREQUAL "usr" OR NOT EXISTS ${work}/staged/usr/include/tenon/tenon.h)
  message(FATAL_ERROR "a staged copy has the folders ${staged} and not the headers below usr")
endif()

# Every link of the documentation leads to an installed file; what is nowhere else, to the headers.
set(readme ${work}/prefix/share/tenon/README.md)
if(NOT EXISTS ${readme})
  message(FATAL_ERROR "there is no ${readme}")
endif()
file(GLOB pages ${readme} ${work}/prefix/share/tenon/docs/*.md)
set(followed 0)
foreach(page ${pages})
  file(READ ${page} text)
  get_filename_component(folder ${page} DIRECTORY)
  # The brackets before the links would join the elements of a list.
  string(REPLACE "](" "@link(" text "${text}")
  string(REGEX MATCHALL "@link\\([^) \n]+\\)" links "${text}")
  foreach(link ${links})
    string(REGEX REPLACE "^@link\\(([^#)]*).*$" "\\1" target "${link}")
    if(target MATCHES "^[a-z]+:" OR target STREQUAL "")
      continue()
    endif()
    if(NOT EXISTS ${folder}/${target})
      message(FATAL_ERROR "${page} links to ${target}, which is not installed")
    endif()
    math(EXPR followed "${followed} + 1")
  endforeach()
endforeach()
if(followed LESS 10)
  message(FATAL_ERROR "only ${followed} links were found in the installed documentation: ${pages}")
endif()
file(READ ${work}/prefix/share/tenon/docs/plugins.md text)
expect("${text}" "\\(\\.\\./\\.\\./\\.\\./include/tenon/core/runtime/dispatch_stats\\.h\\)")

build_outside(${source}/tests/install/application)
run(${work}/application/application)
expect("${output}" "sum 6\n")
run(${work}/application/with_eigen)
expect("${output}" "solved 1 0\n")

# The kit that checks backends needs nothing but the installed copy.
run(${work}/prefix/${bindir}/tenon conformance --op add)
expect("${output}" "cases .* passed, 0 failed")

# A component that does not exist is named.
file(WRITE ${work}/wrong/CMakeLists.txt
     "cmake_minimum_required(VERSION 3.22)\nproject(wrong NONE)\nfind_package(tenon REQUIRED COMPONENTS library core)\n")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${work}/wrong -B ${work}/wrong/build -D CMAKE_PREFIX_PATH=${work}/prefix
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
expect("${status} ${output}" "^1 .*Tenon has no component core\\.")

# The C template, copied away first: it must not lean on files beside it. The others: tutorial.cmake.
file(COPY ${work}/prefix/share/tenon/template/c/ DESTINATION ${work}/copied/template)
build_outside(${work}/copied/template)
run(${CMAKE_COMMAND} -E env TENON_PLUGIN_PATH=${work}/template ${work}/prefix/${bindir}/tenon devices)
expect("${output}" "template:0")
run(${CMAKE_COMMAND} -E env TENON_PLUGIN_PATH=${work}/template ${work}/application/application template)
expect("${output}" "template:0")
run(${work}/prefix/${bindir}/tenon conformance --plugin ${work}/template/template.tenon.json --op add)
expect("${output}" "cases .* passed, 0 failed")
