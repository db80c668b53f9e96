/* libcuda.so.1 of a driver from before the plugin's CUDA, as far as the plugin looks at it. */
int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
