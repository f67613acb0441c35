// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "CSystemLibraries.h"
#include "Functions.h"
#define TABLE clib_js

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// JavaScriptCore's C interface, the same as Apple's, from WebKitGTK. All its objects are opaque pointers.

#define FUNCTIONS(F) \
    F(void *, JSContextGroupCreate, (void)) \
    F(void, JSContextGroupRelease, (void *)) \
    F(void, JSContextGroupSetExecutionTimeLimit, (void *, double, bool (*)(void *, void *), void *)) \
    F(void *, JSGlobalContextCreateInGroup, (void *, void *)) \
    F(void, JSGlobalContextRelease, (void *)) \
    F(void *, JSContextGetGlobalObject, (void *)) \
    F(void *, JSEvaluateScript, (void *, void *, void *, void *, int, void **)) \
    F(void *, JSStringCreateWithUTF8CString, (const char *)) \
    F(void, JSStringRelease, (void *)) \
    F(size_t, JSStringGetMaximumUTF8CStringSize, (void *)) \
    F(size_t, JSStringGetUTF8CString, (void *, char *, size_t)) \
    F(void *, JSValueToStringCopy, (void *, void *, void **)) \
    F(bool, JSValueIsString, (void *, void *)) \
    F(bool, JSValueIsNull, (void *, void *)) \
    F(bool, JSValueIsObject, (void *, void *)) \
    F(void *, JSValueMakeString, (void *, void *)) \
    F(void *, JSValueMakeNull, (void *)) \
    F(void *, JSObjectMakeFunctionWithCallback, ( \
        void *, void *, void *(*)(void *, void *, void *, size_t, void *const[], void **) \
    )) \
    F(void *, JSObjectGetProperty, (void *, void *, void *, void **)) \
    F(void, JSObjectSetProperty, (void *, void *, void *, void *, unsigned, void **)) \
    F(bool, JSObjectIsFunction, (void *, void *)) \
    F(void *, JSObjectCallAsFunction, (void *, void *, void *, size_t, void *const[], void **)) \
    F(void, JSValueProtect, (void *, void *)) \
    F(void, JSValueUnprotect, (void *, void *)) \
    F(int, jsc_options_set_boolean, (const char *, int))

struct clib_js {
    FUNCTIONS(MEMBER)
};

static const struct clib_function functions[] = {FUNCTIONS(ROW)};

struct clib_js_context {
    const struct clib_js *js;
    void *group;
    void *context;
    // The function in which all work runs: see `enter`.
    void *entry;
    double limit;
    clib_js_helper helper;
    void *data;
};

// The context whose script runs on this thread.
static __thread struct clib_js_context *current;

const struct clib_js *clib_js_load(void *handle, const char **missing) {
    struct clib_js *js = LOAD();
    if (!js) return NULL;
    // These options select an interpreter that polls for its time limit. Compiled code would have to be interrupted by signals
    // (SIGSEGV), whose handlers belong to the program.
    js->jsc_options_set_boolean("useJIT", 0);
    js->jsc_options_set_boolean("usePollingTraps", 1);
    return js;
}

// Converts a value to text, to be freed by the caller; NULL if the conversion fails.
static char *text_of(struct clib_js_context *context, void *context_reference, void *value) {
    const struct clib_js *js = context->js;
    void *exception = NULL;
    void *string = js->JSValueToStringCopy(context_reference, value, &exception);
    if (!string) return NULL;
    size_t size = js->JSStringGetMaximumUTF8CStringSize(string);
    char *text = size <= CLIB_JS_MAXIMUM_TEXT ? malloc(size) : NULL;
    if (text) js->JSStringGetUTF8CString(string, text, size);
    js->JSStringRelease(string);
    return text;
}

static void *make_text(struct clib_js_context *context, void *context_reference, const char *text) {
    void *string = context->js->JSStringCreateWithUTF8CString(text);
    void *value = context->js->JSValueMakeString(context_reference, string);
    context->js->JSStringRelease(string);
    return value;
}

// Implements __ask(what, name). Returns text or null.
static void *ask(
    void *context_reference, void *function, void *self, size_t count, void *const arguments[], void **exception
) {
    (void)function, (void)self, (void)exception;
    struct clib_js_context *context = current;
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

// The work of one call of `enter`.
struct work {
    struct clib_js_context *context;
    void (*perform)(struct work *);
    const char *script;
    const char *const *names;
    const char *first, *second;
    struct clib_js_result *result;
    bool is_good;
};

// The work of this thread's current `enter`.
static __thread struct work *pending;

// The function in which all work runs. Everything it calls shares a time limit of `limit` seconds, which starts here.
static void *perform_pending(
    void *context_reference, void *function, void *self, size_t count, void *const arguments[], void **exception
) {
    (void)function, (void)self, (void)count, (void)arguments, (void)exception;
    struct work *work = pending;
    if (!work) return current->js->JSValueMakeNull(context_reference);
    const struct clib_js_context *context = work->context;
    context->js->JSContextGroupSetExecutionTimeLimit(context->group, context->limit, NULL, NULL);
    work->perform(work);
    // A script's deferred work (promises, async functions) runs when this entry returns. Each piece of this work would have a time
    // limit of its own, so a script could run forever. Deferred work does not affect the result and therefore gets no time:
    // terminating the first piece drops the rest.
    context->js->JSContextGroupSetExecutionTimeLimit(context->group, 0, NULL, NULL);
    return context->js->JSValueMakeNull(context_reference);
}

// Does the work inside a call of our own function, because JavaScriptCore runs a script's deferred work when the outermost call
// returns.
static int enter(struct work *work) {
    struct clib_js_context *outer = current;
    struct work *outer_work = pending;
    struct clib_js_context *context = work->context;
    const struct clib_js *js = context->js;
    memset(work->result, 0, sizeof *work->result);
    current = context;
    pending = work;
    js->JSObjectCallAsFunction(context->context, context->entry, NULL, 0, NULL, NULL);
    // A termination leaves a flag that would terminate the next run. Entering without work clears this flag.
    pending = NULL;
    js->JSObjectCallAsFunction(context->context, context->entry, NULL, 0, NULL, NULL);
    js->JSContextGroupSetExecutionTimeLimit(context->group, context->limit, NULL, NULL);
    current = outer;
    pending = outer_work;
    return work->is_good;
}

struct clib_js_context *clib_js_create(const struct clib_js *js, double limit, clib_js_helper helper, void *data) {
    struct clib_js_context *context = calloc(1, sizeof *context);
    if (!context) return NULL;
    context->js = js;
    context->limit = limit;
    context->helper = helper;
    context->data = data;
    context->group = js->JSContextGroupCreate();
    js->JSContextGroupSetExecutionTimeLimit(context->group, limit, NULL, NULL);
    context->context = js->JSGlobalContextCreateInGroup(context->group, NULL);
    void *name = js->JSStringCreateWithUTF8CString("__ask");
    void *function = js->JSObjectMakeFunctionWithCallback(context->context, name, ask);
    js->JSObjectSetProperty(context->context, js->JSContextGetGlobalObject(context->context), name, function, 0, NULL);
    js->JSStringRelease(name);
    context->entry = js->JSObjectMakeFunctionWithCallback(context->context, NULL, perform_pending);
    js->JSValueProtect(context->context, context->entry);
    return context;
}

void clib_js_free(struct clib_js_context *context) {
    if (!context) return;
    context->js->JSValueUnprotect(context->context, context->entry);
    context->js->JSGlobalContextRelease(context->context);
    context->js->JSContextGroupRelease(context->group);
    free(context);
}

static void fail(struct clib_js_context *context, void *exception, struct clib_js_result *result) {
    char *text = exception ? text_of(context, context->context, exception) : NULL;
    snprintf(result->failure, sizeof result->failure, "%s", text ? text : "it threw an exception");
    free(text);
}

static void perform_run(struct work *work) {
    struct clib_js_context *context = work->context;
    void *string = context->js->JSStringCreateWithUTF8CString(work->script);
    void *exception = NULL;
    void *value = context->js->JSEvaluateScript(context->context, string, NULL, NULL, 1, &exception);
    context->js->JSStringRelease(string);
    if (exception || !value) fail(context, exception, work->result);
    work->is_good = !exception && value;
}

int clib_js_run(struct clib_js_context *context, const char *script, struct clib_js_result *result) {
    return enter(&(struct work){.context = context, .perform = perform_run, .script = script, .result = result});
}

static void *find_function(struct clib_js_context *context, const char *const *names) {
    const struct clib_js *js = context->js;
    void *global = js->JSContextGetGlobalObject(context->context);
    for (; *names; names++) {
        void *name = js->JSStringCreateWithUTF8CString(*names);
        void *property = js->JSObjectGetProperty(context->context, global, name, NULL);
        js->JSStringRelease(name);
        if (property && js->JSValueIsObject(context->context, property) && js->JSObjectIsFunction(context->context, property)) {
            return property;
        }
    }
    return NULL;
}

static void perform_call(struct work *work) {
    struct clib_js_context *context = work->context;
    const struct clib_js *js = context->js;
    struct clib_js_result *result = work->result;
    void *function = find_function(context, work->names);
    if (!function) {
        snprintf(result->failure, sizeof result->failure, "it has no function FindProxyForURL");
        return;
    }
    void *const arguments[] = {
        make_text(context, context->context, work->first), make_text(context, context->context, work->second)
    };
    void *exception = NULL;
    void *value = js->JSObjectCallAsFunction(context->context, function, NULL, 2, arguments, &exception);
    if (exception || !value) {
        fail(context, exception, result);
    } else if (js->JSValueIsString(context->context, value)) {
        result->text = text_of(context, context->context, value);
        if (!result->text) snprintf(result->failure, sizeof result->failure, "its result is too long");
        work->is_good = result->text != NULL;
    } else if (js->JSValueIsNull(context->context, value)) {
        work->is_good = true;
    } else {
        snprintf(result->failure, sizeof result->failure, "its result is neither a string nor null");
    }
}

int clib_js_call(
    struct clib_js_context *context, const char *const *names, const char *first, const char *second, struct clib_js_result *result
) {
    return enter(&(struct work){
        .context = context, .perform = perform_call, .names = names, .first = first, .second = second, .result = result
    });
}
