#include "tools/command.h"

int main(int argc, char** argv) {
  plumbline::Tools tools;
  tools.engines.AddDefaultPluginFolders();
  return plumbline::RunPlumb({argv + 1, argv + argc}, tools);
}
