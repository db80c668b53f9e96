cmake_policy(SET CMP0007 NEW)
set(compile ${cxx} ${all_errors} -std=c++20 -fsyntax-only -I${include} ${CMAKE_CURRENT_LIST_DIR}/refused.cpp)
set(ENV{LC_ALL} C)

execute_process(COMMAND ${compile} RESULT_VARIABLE failed ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "what should compile does not:\n${said}")
endif()

execute_process(COMMAND ${compile} -DREFUSED RESULT_VARIABLE failed ERROR_VARIABLE said)
if(NOT failed)
  message(FATAL_ERROR "what should be refused compiles")
endif()
set(wanted
    "to write values, use x[0].copy_(y)"
    "to write values, use x[0].fill_(2)"
    "nn::repeat wants a callable that makes a module, not a module"
    "nn::repeat wants a callable that makes a module, with no argument or its number"
    "nn::repeat wants a callable that returns a module by value, of a type T that derives from nn::Module<T>"
    "clone needs a module that can be copied"
    "elements of a tensor are float, double, int64_t, long long, int32_t, uint8_t or bool"
    "give the correction first"
    "a module type T has to derive from nn::Module<T> itself"
    "private or miscounted fields: write fields(), see above"
    "the arguments of a compiled function are tensors: pass a number as tenon::scalar(number)"
    "the function that was given to tenon::compile takes another number of arguments"
    "a compiled function returns a Tensor, a std::vector<Tensor>,")
foreach(number RANGE 10 22)
  list(APPEND wanted "Derived<${number}>")
endforeach()
foreach(text IN LISTS wanted)
  string(FIND "${said}" "${text}" at)
  if(at EQUAL -1)
    message(SEND_ERROR "the compiler does not say: ${text}")
    set(missing TRUE)
  endif()
endforeach()
# What follows from what was said already would bury it.
foreach(text "no matching function for call to 'tenon::nn::Linear::forward" "cannot be used as a function" "does not provide a call operator" "use of deleted function 'std::unique_ptr")
  string(FIND "${said}" "${text}" at)
  if(NOT at EQUAL -1)
    message(SEND_ERROR "the compiler goes on to say: ${text}")
    set(missing TRUE)
  endif()
endforeach()
if(missing)
  message(FATAL_ERROR "${said}")
endif()
