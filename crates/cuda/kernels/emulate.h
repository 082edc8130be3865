// Enough of CUDA to run a kernel on a CPU, for tests: the threads of a block are fibers of one thread, which give way
// to each other at barriers, shuffles and tensor cores; blocks run one after the other. What the arithmetic and the
// indices do shows here, races between barriers do not. x86-64, GCC or Clang.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

using std::max;
using std::min;
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n)
#define __shared__ static // one block at a time
#define __syncthreads() give_way(AT_BLOCK)
#define __shfl_xor_sync(mask, value, lanes) shuffled(value, lanes)

struct Index {
    int x, y, z;
};
struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16)));
struct double2 {
    double x, y;
} __attribute__((aligned(16)));
struct double4 {
    double x, y, z, w;
};
struct int4 {
    int x, y, z, w;
} __attribute__((aligned(16)));

inline double4 make_double4(double x, double y, double z, double w) { return {x, y, z, w}; }

static Index threadIdx, blockIdx, blockDim;
static double dynamic_shared[1 << 16] __attribute__((aligned(128)));

enum State { RUNS, AT_BLOCK, AT_WARP, DONE };

struct Fiber {
    void* stack_pointer;
    std::vector<char> stack;
    State state;
};

static std::vector<Fiber> fibers;
static int current;
static void* scheduler;
static std::function<void()> kernel;

// Keeps the registers of the caller on its stack, stores that, and goes on with another.
extern "C" void switch_stacks(void** from, void* to);
asm(".globl switch_stacks\n"
    "switch_stacks:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

static void give_way(State state) {
    const int me = current;
    fibers[me].state = state;
    switch_stacks(&fibers[me].stack_pointer, scheduler);
    threadIdx = {me, 0, 0};
}

static void begin() {
    threadIdx = {current, 0, 0};
    kernel();
    give_way(DONE);
    abort();
}

static double left[64][32], right[64][32];

static double shuffled(double value, int lanes) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    left[warp][lane] = value;
    give_way(AT_WARP);
    const double other = left[warp][lane ^ lanes];
    give_way(AT_WARP);
    return other;
}

// mma.sync.aligned.m8n8k4.row.col.f64: lane 4g + t has a of row g and depth t, b of depth t and column g, and d of row
// g and columns 2t and 2t + 1.
static void tensor_multiply(double (&d)[2], double a, double b) {
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    left[warp][lane] = a, right[warp][lane] = b;
    give_way(AT_WARP);
    for (int e = 0; e < 2; e++)
        for (int k = 0; k < 4; k++) d[e] = fma(left[warp][g * 4 + k], right[warp][(2 * t + e) * 4 + k], d[e]);
    give_way(AT_WARP);
}

// Lets fibers first..last go on if all that are not done wait at `state`.
static bool release(int first, int last, State state) {
    bool waiting = false;
    for (int i = first; i < last; i++) {
        if (fibers[i].state == state) waiting = true;
        else if (fibers[i].state != DONE) return false;
    }
    for (int i = first; waiting && i < last; i++)
        if (fibers[i].state == state) fibers[i].state = RUNS;
    return waiting;
}

static void run_block(int threads) {
    for (int i = 0; i < threads; i++) {
        Fiber& fiber = fibers[i];
        fiber.stack.resize(1 << 16);
        // As if `begin` had been called: six registers and an address to return to.
        void** top = (void**)((((uintptr_t)fiber.stack.data() + fiber.stack.size()) & ~(uintptr_t)63) - 56);
        *top = nullptr;
        *--top = (void*)begin;
        for (int k = 0; k < 6; k++) *--top = nullptr;
        fiber.stack_pointer = top;
        fiber.state = RUNS;
    }
    for (bool forwards = true, any = true; any; forwards = !forwards) {
        any = false;
        // First to last and back in turn, so that an order that only happens to work shows.
        for (int at = 0; at < threads; at++) {
            const int i = forwards ? at : threads - 1 - at;
            if (fibers[i].state != RUNS) continue;
            any = true, current = i;
            switch_stacks(&scheduler, fibers[i].stack_pointer);
        }
        for (int warp = 0; warp < threads; warp += 32) any |= release(warp, min(warp + 32, threads), AT_WARP);
        any |= release(0, threads, AT_BLOCK);
    }
    for (int i = 0; i < threads; i++)
        if (fibers[i].state != DONE) fprintf(stderr, "thread %d waits for ever\n", i), abort();
}

static void run(std::function<void()> work, int x, int y, int z, int threads) {
    kernel = work, blockDim = {threads, 1, 1};
    if ((int)fibers.size() < threads) fibers.resize(threads);
    for (int k = 0; k < z; k++)
        for (int j = 0; j < y; j++)
            for (int i = 0; i < x; i++) blockIdx = {i, j, k}, run_block(threads);
}
