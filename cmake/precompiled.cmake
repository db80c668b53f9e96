# tenon_precompile(target header…): the headers are parsed once for all files of the target, which halves the time that most files
# take. Only headers that hardly change belong here: a change compiles the whole target again. A build without this shows that every
# file includes what it uses, and shows warnings that GCC 12 cannot tell from false alarms in a precompiled standard library; the
# presets of the sanitizers and `./dev` turn it on, the others leave it off.
option(TENON_PRECOMPILE "Parse the standard library's headers once for each target" OFF)

function(tenon_precompile target)
  if(NOT TENON_PRECOMPILE)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # The first, or ccache does not keep the objects; without the one for clang neither.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> -Wno-array-bounds -Wno-maybe-uninitialized
                           -Wno-stringop-overread)
  else()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>)
  endif()
endfunction()
