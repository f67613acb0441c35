// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int clib_open(const char *name, struct clib_opening *opening) {
    memset(opening, 0, sizeof *opening);
    opening->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!opening->handle) {
        const char *error = dlerror();
        snprintf(opening->text, sizeof opening->text, "%s", error ? error : "cannot be opened");
        return 0;
    }
    struct link_map *map = NULL;
    int has_path = dlinfo(opening->handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && map->l_name[0];
    snprintf(opening->text, sizeof opening->text, "%s", has_path ? map->l_name : name);
    return 1;
}

int clib_can_open(void) { return dlopen(NULL, RTLD_LAZY) != NULL; }

void *clib_load(void *handle, size_t size, const struct clib_function *functions, size_t count, const char **missing) {
    char *table = calloc(1, size);
    *missing = "memory";
    if (!table) return NULL;
    for (size_t index = 0; index < count; index++) {
        // Also finds functions of the libraries to which the library is linked.
        void *function = dlsym(handle, functions[index].name);
        if (!function && !functions[index].is_optional) {
            *missing = functions[index].name;
            free(table);
            return NULL;
        }
        memcpy(table + functions[index].offset, &function, sizeof function);
    }
    return table;
}
