# cmake --install: bin/ (programs), lib/ (static libraries; engine plug-ins, where `plumb` looks for them),
# include/plumbline/ (headers) and lib/cmake/Plumbline (find_package). Included after the folders were added.
#
# Installed libraries: what an engine or a suite of someone else is written against, and whatever those stand on.
set(PLUMBLINE_INSTALLED_LIBRARIES api core scripted simulated record workload replay run judge report serving golden suite)
set(PLUMBLINE_INSTALLED_PROGRAMS plumb plumb_suites plumb_device_probe plumb_guard)
set(PLUMBLINE_INSTALLED_PLUGINS plumbline_torch)

# Adds the target to the list named by `out`, after all libraries of the project that it links, however far down.
function(plumbline_collect_libraries out target)
  get_target_property(real ${target} ALIASED_TARGET)
  if(real)
    set(target ${real})
  endif()
  if(target IN_LIST ${out})
    return()
  endif()
  set(collected ${${out}})
  foreach(property IN ITEMS LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(links ${target} ${property})
    foreach(link IN LISTS links)
      if(link MATCHES "^plumbline(::|_)" AND TARGET ${link})
        plumbline_collect_libraries(collected ${link})
      endif()
    endforeach()
  endforeach()
  list(APPEND collected ${target})
  set(${out} ${collected} PARENT_SCOPE)
endfunction()

set(libraries)
foreach(name IN LISTS PLUMBLINE_INSTALLED_LIBRARIES)
  if(TARGET plumbline::${name})
    plumbline_collect_libraries(libraries plumbline::${name})
  endif()
endforeach()
foreach(library IN LISTS libraries)
  string(REGEX REPLACE "^plumbline_" "" exported ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${exported})
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:include/plumbline>)
endforeach()
install(TARGETS ${libraries} EXPORT PlumblineTargets ARCHIVE DESTINATION lib)

foreach(program IN LISTS PLUMBLINE_INSTALLED_PROGRAMS)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION bin)
  endif()
endforeach()
# What the vllm engine runs, beside the programs as in the build tree.
install(FILES engine/vllm/plumbline_vllm_worker.py engine/vllm/plumbline_vllm_facts.py DESTINATION bin)
foreach(plugin IN LISTS PLUMBLINE_INSTALLED_PLUGINS)
  if(TARGET ${plugin})
    install(TARGETS ${plugin} LIBRARY DESTINATION lib)
  endif()
endforeach()
# Headers keep their path from the project's root, so that includes read the same inside and outside. Engines that are
# plug-ins have no headers for others.
install(DIRECTORY engine fixtures DESTINATION include/plumbline FILES_MATCHING PATTERN "*.h" 
  PATTERN "torch" EXCLUDE PATTERN "kernels" EXCLUDE)

include(CMakePackageConfigHelpers)
configure_package_config_file(${PROJECT_SOURCE_DIR}/ci/cmake/PlumblineConfig.cmake.in
  ${PROJECT_BINARY_DIR}/PlumblineConfig.cmake INSTALL_DESTINATION lib/cmake/Plumbline)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/PlumblineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/PlumblineConfig.cmake ${PROJECT_BINARY_DIR}/PlumblineConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/ci/cmake/PlumblineDependencies.cmake DESTINATION lib/cmake/Plumbline)
install(EXPORT PlumblineTargets NAMESPACE plumbline:: DESTINATION lib/cmake/Plumbline)
