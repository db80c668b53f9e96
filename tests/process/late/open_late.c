// open_late GREEDY LIBTENON USER: opens the three in this order, runs USER's operators in two
// threads and once more after them, and closes what it opened.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static int (*run_operators)(void);

static void* run(void* unused) {
  (void)unused;
  return (void*)(intptr_t)run_operators();
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* opened[4] = {NULL};
  for (int i = 1; i < argc; ++i)
    if (!(opened[i] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL))) {
      printf("%s\n", dlerror());
      return 3;
    }
  *(void**)&run_operators = dlsym(opened[3], "run_operators");
  if (!run_operators) return 4;
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i)
    if (pthread_create(&threads[i], NULL, run, NULL)) return 5;
  int wrong = 0;
  for (int i = 0; i < 2; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    wrong |= (int)(intptr_t)result;
  }
  wrong |= run_operators();
  for (int i = 3; i > 0; --i) dlclose(opened[i]);
  return wrong;
}
