/* What the companions' test programs share: a check that ends the program and says where, and names of the driver's functions. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                              \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);    \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

/* The symbol that cuda.h gives a function. */
#define TEXT(name) #name
#define SYMBOL(name) TEXT(name)

#endif
