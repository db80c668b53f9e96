# Programs whose tests look at the library from outside, and do not care how it was compiled. `./dev test` compiles them once: for the
# address sanitizer's build, without instrumentation, as what is tried is watched and not what tries it; the release build takes
# these objects (TENON_TEST_OBJECTS) and links them to its own library. Their time to compile is a third of that of all else.
# Not so: programs that replace malloc or system calls, those of the folder process and cuda, which depend on the build, and core
# and data, whose subject is templates in headers.
set(TENON_TEST_OBJECTS "" CACHE PATH "The build tree from which objects of tests are taken; empty: they are compiled here")
set(shared_programs autograd cli fuzz graph modules ops parallel plugins runtime serialization training)

set(unwatched -fno-sanitize=all -U__SANITIZE_ADDRESS__)

# Whether the program `name` is one of them, in a build that gives or takes objects.
function(is_shared_program result name)
  set(${result} FALSE PARENT_SCOPE)
  if(name IN_LIST shared_programs AND (TENON_SANITIZE MATCHES address OR TENON_TEST_OBJECTS))
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# share_objects(target): they are compiled for two builds, and listed in tests/objects/<target>.txt.
function(share_objects target)
  target_compile_options(${target} PRIVATE ${unwatched})
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/tests/objects/${target}.txt CONTENT "$<JOIN:$<TARGET_OBJECTS:${target}>,\n>\n")
endfunction()

# take_objects(result target): those of the other build.
function(take_objects result target)
  set(list ${TENON_TEST_OBJECTS}/tests/objects/${target}.txt)
  if(NOT EXISTS ${list})
    message(FATAL_ERROR "TENON_TEST_OBJECTS names '${TENON_TEST_OBJECTS}', where ${target} has no list of objects: configure the preset "
                        "asan there first, or set it to nothing")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${list})
  file(STRINGS ${list} objects)
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
