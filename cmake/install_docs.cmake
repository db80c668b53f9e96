# Run at install time with `source`, `room`, `headers` and `destination`, the last two relative to the prefix: installs the documentation, and beside its
# folder README.md, as in the source tree. Where a page links to another file of that tree, an installed copy links to the installed header,
# and has plain text if there is none. Headers are installed before.
cmake_policy(VERSION 3.22)
file(REMOVE_RECURSE ${room})
get_filename_component(beside "${destination}" DIRECTORY)

# Installs the page `name` of the folder `from` of the source tree in the folder `to`. `up` is how its links to other files of the tree begin,
# and `outward` is such a link.
function(install_page from name to up outward)
  file(READ ${source}/${from}${name} text)
  string(REGEX MATCHALL "${outward}" links "${text}")
  list(REMOVE_DUPLICATES links)
  list(FILTER links EXCLUDE REGEX "README\\.md|^\\(docs/|^\\([a-z]+:")
  foreach(link ${links})
    string(REGEX REPLACE "^\\(${up}(.*)\\)$" "\\1" path "${link}")
    if(path MATCHES "\\.h$" AND EXISTS "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${headers}/tenon/${path}")
      file(RELATIVE_PATH there "/${to}" "/${headers}/tenon/${path}")
      string(REPLACE "]${link}" "](${there})" text "${text}")
    else()
      string(REGEX REPLACE "([.+])" "\\\\\\1" pattern "${path}")
      string(REGEX REPLACE "\\[([^][]*)\\]\\(${up}${pattern}\\)" "\\1" text "${text}")
    endif()
  endforeach()
  file(WRITE ${room}/${from}${name} "${text}")
  file(INSTALL ${room}/${from}${name} DESTINATION "${CMAKE_INSTALL_PREFIX}/${to}")
endfunction()

install_page("" README.md "${beside}" "" "\\([A-Za-z_]+/[^) \n]+\\)")
file(GLOB pages RELATIVE ${source}/docs ${source}/docs/*.md)
foreach(page ${pages})
  install_page(docs/ ${page} "${destination}" "\\.\\./" "\\(\\.\\./[^) \n]+\\)")
endforeach()
