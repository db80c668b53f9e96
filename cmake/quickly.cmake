# tenon_compile_quickly(target scope [WATCHED]): for what tries the library, and for programs whose time the library takes. Optimizing
# them doubles the time to compile them, and so do the checks of the sanitizers, as what is tried is watched, not what tries it;
# WATCHED leaves the checks in. `scope` is that of target_compile_options; what has a precompiled header needs the same options there.
function(tenon_compile_quickly target scope)
  target_compile_options(${target} ${scope} -O0)
  if("WATCHED" IN_LIST ARGN)
    return()
  endif()
  if(TENON_SANITIZE MATCHES undefined)
    target_compile_options(${target} ${scope} -fno-sanitize=undefined)
  endif()
  if(TENON_SANITIZE MATCHES address)
    target_compile_options(${target} ${scope} -fno-sanitize-address-use-after-scope)
  endif()
endfunction()
