# tenon_embed(file root name=path…): a file of initializers {"name", R"text"}, one for each text file, made in the build and made again
# when one of them changes. Paths are relative to the root. As a script, it writes that file.
if(CMAKE_SCRIPT_MODE_FILE)
  set(all "")
  foreach(pair ${PAIRS})
    string(REGEX MATCH "^([^=]+)=(.+)$" ignored "${pair}")
    set(name "${CMAKE_MATCH_1}")
    file(READ "${ROOT}/${CMAKE_MATCH_2}" text)
    string(APPEND all "{\"${name}\", R\"~embedded~(${text})~embedded~\"},\n")
  endforeach()
  file(WRITE "${FILE}" "${all}")
  return()
endif()

set(tenon_embed_script ${CMAKE_CURRENT_LIST_FILE})
function(tenon_embed file root)
  set(dependencies)
  foreach(pair ${ARGN})
    string(REGEX REPLACE "^[^=]+=" "${root}/" path "${pair}")
    list(APPEND dependencies ${path})
  endforeach()
  add_custom_command(
    OUTPUT ${file} COMMAND ${CMAKE_COMMAND} "-DFILE=${file}" "-DROOT=${root}" "-DPAIRS=${ARGN}" -P ${tenon_embed_script}
    DEPENDS ${dependencies} ${tenon_embed_script} VERBATIM)
endfunction()
