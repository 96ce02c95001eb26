/* The random test, on Redis. */
#define CONTRACT redis_contract
#define STEPS    4000
#include "test_store_model.c"
