# Install rules, and the package that find_package(tenon) reads. An installed copy puts nothing but tenon/ on the include path.
include(CMakePackageConfigHelpers)

install(TARGETS tenon EXPORT tenonTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tenon_plugin EXPORT tenonPluginTargets)

# Public headers are those that tenon.h, abi.h and sdk.h lead to; what only the library's own files include stays at home.
install(CODE "set(source \"${PROJECT_SOURCE_DIR}\")\nset(destination \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake)

# For authors of backends: documentation, and templates that build from this copy. The kernels of two templates are the same files.
install(CODE "set(source \"${PROJECT_SOURCE_DIR}\")\nset(room \"${PROJECT_BINARY_DIR}/installed_docs\")\nset(headers \"${CMAKE_INSTALL_INCLUDEDIR}\")
set(destination \"${CMAKE_INSTALL_DATADIR}/tenon/docs\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_docs.cmake)
install(DIRECTORY plugins/template DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon PATTERN build EXCLUDE)
foreach(file kernels.h matrix.cpp pointwise.cpp training.cpp)
  install(FILES plugins/template/cpp/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/tenon/template/streams)
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tenon)
set(TENON_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/${TENON_PLUGIN_SUBDIR})
configure_package_config_file(cmake/tenonConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/tenonConfig.cmake INSTALL_DESTINATION ${package}
                              PATH_VARS TENON_PLUGIN_INSTALL_DIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/tenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT tenonTargets NAMESPACE tenon:: DESTINATION ${package})
install(EXPORT tenonPluginTargets NAMESPACE tenon:: DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/cmake/tenonConfig.cmake ${PROJECT_BINARY_DIR}/cmake/tenonConfigVersion.cmake DESTINATION ${package})
