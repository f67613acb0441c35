//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#define _GNU_SOURCE
#include "CSystemLibraries.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// JavaScriptCore's C interface, the same as Apple's, from WebKitGTK. All its objects are opaque pointers.

struct csl_js {
    void *(*JSContextGroupCreate)(void);
    void (*JSContextGroupRelease)(void *);
    void (*JSContextGroupSetExecutionTimeLimit)(void *, double, bool (*)(void *, void *), void *);
    void *(*JSGlobalContextCreateInGroup)(void *, void *);
    void (*JSGlobalContextRelease)(void *);
    void *(*JSContextGetGlobalObject)(void *);
    void *(*JSEvaluateScript)(void *, void *, void *, void *, int, void **);
    void *(*JSStringCreateWithUTF8CString)(const char *);
    void (*JSStringRelease)(void *);
    size_t (*JSStringGetMaximumUTF8CStringSize)(void *);
    size_t (*JSStringGetUTF8CString)(void *, char *, size_t);
    void *(*JSValueToStringCopy)(void *, void *, void **);
    bool (*JSValueIsString)(void *, void *);
    bool (*JSValueIsNull)(void *, void *);
    bool (*JSValueIsObject)(void *, void *);
    void *(*JSValueMakeString)(void *, void *);
    void *(*JSValueMakeNull)(void *);
    void *(*JSObjectMakeFunctionWithCallback)(
        void *, void *, void *(*)(void *, void *, void *, size_t, void *const[], void **)
    );
    void *(*JSObjectGetProperty)(void *, void *, void *, void **);
    void (*JSObjectSetProperty)(void *, void *, void *, void *, unsigned, void **);
    bool (*JSObjectIsFunction)(void *, void *);
    void *(*JSObjectCallAsFunction)(void *, void *, void *, size_t, void *const[], void **);
    int (*jsc_options_set_boolean)(const char *, int);
};

struct csl_js_context {
    const struct csl_js *js;
    void *group;
    void *context;
    csl_js_helper helper;
    void *data;
};

// Whose script runs on this thread.
static __thread struct csl_js_context *current;

const struct csl_js *csl_js_load(void *handle, const char **missing) {
    struct csl_js *js = calloc(1, sizeof *js);
    *missing = "memory";
    if (!js) return NULL;
#define FUNCTION(name) {#name, &js->name}
    const struct {
        const char *name;
        void *place;
    } functions[] = {
        FUNCTION(JSContextGroupCreate), FUNCTION(JSContextGroupRelease), FUNCTION(JSContextGroupSetExecutionTimeLimit),
        FUNCTION(JSGlobalContextCreateInGroup), FUNCTION(JSGlobalContextRelease), FUNCTION(JSContextGetGlobalObject),
        FUNCTION(JSEvaluateScript), FUNCTION(JSStringCreateWithUTF8CString), FUNCTION(JSStringRelease),
        FUNCTION(JSStringGetMaximumUTF8CStringSize), FUNCTION(JSStringGetUTF8CString), FUNCTION(JSValueToStringCopy),
        FUNCTION(JSValueIsString), FUNCTION(JSValueIsNull), FUNCTION(JSValueIsObject), FUNCTION(JSValueMakeString),
        FUNCTION(JSValueMakeNull), FUNCTION(JSObjectMakeFunctionWithCallback), FUNCTION(JSObjectGetProperty),
        FUNCTION(JSObjectSetProperty), FUNCTION(JSObjectIsFunction), FUNCTION(JSObjectCallAsFunction),
        FUNCTION(jsc_options_set_boolean),
    };
#undef FUNCTION
    for (size_t index = 0; index < sizeof functions / sizeof functions[0]; index++) {
        void *function = csl_find(handle, functions[index].name);
        if (!function) {
            *missing = functions[index].name;
            free(js);
            return NULL;
        }
        memcpy(functions[index].place, &function, sizeof function);
    }
    // An interpreter that looks itself whether its time is over: compiled code is stopped by signals (SIGSEGV), which are the program's.
    js->jsc_options_set_boolean("useJIT", 0);
    js->jsc_options_set_boolean("usePollingTraps", 1);
    return js;
}

// What a value is as text, to be freed; NULL where it cannot be one.
static char *text_of(struct csl_js_context *context, void *context_reference, void *value) {
    const struct csl_js *js = context->js;
    void *exception = NULL;
    void *string = js->JSValueToStringCopy(context_reference, value, &exception);
    if (!string) return NULL;
    size_t size = js->JSStringGetMaximumUTF8CStringSize(string);
    char *text = size <= CSL_JS_MAXIMUM_TEXT ? malloc(size) : NULL;
    if (text) js->JSStringGetUTF8CString(string, text, size);
    js->JSStringRelease(string);
    return text;
}

static void *make_text(struct csl_js_context *context, void *context_reference, const char *text) {
    void *string = context->js->JSStringCreateWithUTF8CString(text);
    void *value = context->js->JSValueMakeString(context_reference, string);
    context->js->JSStringRelease(string);
    return value;
}

// __ask(what, name): text, or null.
static void *ask(
    void *context_reference, void *function, void *self, size_t count, void *const arguments[], void **exception
) {
    (void)function, (void)self, (void)exception;
    struct csl_js_context *context = current;
    void *null = context->js->JSValueMakeNull(context_reference);
    if (count < 2) return null;
    char *what = text_of(context, context_reference, arguments[0]);
    char *name = text_of(context, context_reference, arguments[1]);
    char *answer = what && name ? context->helper(context->data, what, name) : NULL;
    void *value = answer ? make_text(context, context_reference, answer) : null;
    free(what);
    free(name);
    free(answer);
    return value;
}

struct csl_js_context *csl_js_create(const struct csl_js *js, double limit, csl_js_helper helper, void *data) {
    struct csl_js_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->js = js;
    context->helper = helper;
    context->data = data;
    context->group = js->JSContextGroupCreate();
    js->JSContextGroupSetExecutionTimeLimit(context->group, limit, NULL, NULL);
    context->context = js->JSGlobalContextCreateInGroup(context->group, NULL);
    void *name = js->JSStringCreateWithUTF8CString("__ask");
    void *function = js->JSObjectMakeFunctionWithCallback(context->context, name, ask);
    js->JSObjectSetProperty(context->context, js->JSContextGetGlobalObject(context->context), name, function, 0, NULL);
    js->JSStringRelease(name);
    return context;
}

void csl_js_free(struct csl_js_context *context) {
    if (!context) return;
    context->js->JSGlobalContextRelease(context->context);
    context->js->JSContextGroupRelease(context->group);
    free(context);
}

static void fail(struct csl_js_context *context, void *exception, struct csl_js_result *result) {
    char *text = text_of(context, context->context, exception);
    snprintf(result->failure, sizeof result->failure, "%s", text ? text : "it threw something");
    free(text);
}

int csl_js_run(struct csl_js_context *context, const char *script, struct csl_js_result *result) {
    memset(result, 0, sizeof *result);
    struct csl_js_context *outer = current;
    current = context;
    void *string = context->js->JSStringCreateWithUTF8CString(script);
    void *exception = NULL;
    void *value = context->js->JSEvaluateScript(context->context, string, NULL, NULL, 1, &exception);
    context->js->JSStringRelease(string);
    if (exception || !value) fail(context, exception, result);
    current = outer;
    return !exception && value;
}

int csl_js_call(
    struct csl_js_context *context, const char *const *names, const char *first, const char *second, struct csl_js_result *result
) {
    const struct csl_js *js = context->js;
    memset(result, 0, sizeof *result);
    struct csl_js_context *outer = current;
    current = context;
    void *global = js->JSContextGetGlobalObject(context->context);
    void *function = NULL, *exception = NULL, *value = NULL;
    for (; *names && !function; names++) {
        void *name = js->JSStringCreateWithUTF8CString(*names);
        void *property = js->JSObjectGetProperty(context->context, global, name, NULL);
        js->JSStringRelease(name);
        if (property && js->JSValueIsObject(context->context, property) && js->JSObjectIsFunction(context->context, property)) {
            function = property;
        }
    }
    if (!function) {
        snprintf(result->failure, sizeof result->failure, "it has no function FindProxyForURL");
    } else {
        void *const arguments[] = {
            make_text(context, context->context, first), make_text(context, context->context, second)
        };
        value = js->JSObjectCallAsFunction(context->context, function, NULL, 2, arguments, &exception);
        if (exception || !value) {
            fail(context, exception, result);
            value = NULL;
        } else if (js->JSValueIsString(context->context, value)) {
            result->text = text_of(context, context->context, value);
            if (!result->text) {
                snprintf(result->failure, sizeof result->failure, "its answer is too long");
                value = NULL;
            }
        } else if (!js->JSValueIsNull(context->context, value)) {
            snprintf(result->failure, sizeof result->failure, "its answer is neither text nor null");
            value = NULL;
        }
    }
    current = outer;
    return value != NULL;
}
