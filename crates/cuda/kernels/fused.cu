// K·V without K: squared distances on the tensor cores, kernel values in registers, times V on the
// tensor cores again. Compiled once for each KIND, PARTS and GROUPS (see build.py).
//
//   out_i = sum over j of k(z_i, z_j) v_j,      V: N rows, up to 4*GROUPS columns
//
// Numbers. Features are centred and scaled so that x_ij = a_i·a_j - s_i - s_j, s_i = |a_i|²/2, is
// all a kernel needs. Every operand is f16, whose 11 bits are those of tf32 at twice the rate:
// a = hi + lo. PARTS = 1 uses hi alone, with the norms of hi: these are distances of slightly moved
// samples, whose kernel matrix is positive semidefinite until its values are rounded. PARTS = 2
// adds hi·lo + lo·hi (22 bits). Kernel values are scaled by 2^10 and split likewise; V is scaled a
// column and always split: columns 0..3 hold hi, 4..7 lo.
//
// Order. A block of threads owns a pair of row groups (a <= b) and walks its 128 x 128 tiles; each
// tile serves both out_a += K v_b and out_b += K' v_a. Sums stay with the thread that made them
// (shared memory, one owner a word) and leave as one partial a pair, which `reduce_partials` in
// pack.cu adds in a fixed order: no atomics on floats, the same bits in each run.

#define RBF 0
#define LAPLACE 1
#define MATERN32 2
#define MATERN52 3

#ifndef KIND
#define KIND RBF
#endif
#ifndef PARTS
#define PARTS 2
#endif
#ifndef GROUPS
#define GROUPS 1
#endif
// Of so many exponentials one is computed by a polynomial on the FMA units; 0: none.
#ifndef POLYNOMIAL_EVERY
#define POLYNOMIAL_EVERY 0
#endif

typedef unsigned int u32;
typedef unsigned long long u64;

// Warps beside each other in a tile; two lie above each other, each with 64 rows.
constexpr int COLUMN_WARPS = 2;
constexpr int TILE = 128; // rows and columns of a tile
constexpr int THREADS = 64 * COLUMN_WARPS;
constexpr int COLUMNS = TILE / COLUMN_WARPS; // of a warp
constexpr int EIGHTS = COLUMNS / 8;          // fragments of 8 columns
constexpr int PAIRS = COLUMNS / 16;          // of 16
constexpr int CHUNK = 16;      // features a step of the tensor cores takes
constexpr int SUMS = 4 * GROUPS;
// Bytes of one chunk of a tile: f16 in PARTS parts, or f32 for differences.
constexpr int PART_BYTES = TILE * CHUNK * 2;
constexpr int CHUNK_BYTES = KIND == LAPLACE ? TILE * CHUNK * 4 : PARTS * PART_BYTES;
constexpr int V_ROW = TILE * 2 + 16; // bytes of a row of V in shared memory: eight rows begin in different banks
constexpr int V_BYTES = GROUPS * 8 * V_ROW;
constexpr float SHIFT = 10.0f; // kernel values are scaled by 2^SHIFT
constexpr float LOG2E = 1.4426950408889634f;

__device__ __forceinline__ u32 shared_address(const void* p) {
    return (u32)__cvta_generic_to_shared(p);
}

__device__ __forceinline__ void copy16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ u32 transposed(u32 a) {
    u32 d;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(a));
    return d;
}

__device__ __forceinline__ u32 packed(float low, float high) {
    u32 d;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
    return d;
}

// What rounding to f16 left of two numbers.
__device__ __forceinline__ u32 remainder(float low, float high, u32 rounded) {
    float l, h;
    asm("{.reg .b16 x, y; mov.b32 {x, y}, %2; cvt.f32.f16 %0, x; cvt.f32.f16 %1, y;}"
        : "=f"(l), "=f"(h)
        : "r"(rounded));
    return packed(low - l, high - h);
}

__device__ __forceinline__ float exp2_unit(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 2^x for x <= 127: x = i + f with |f| <= 1/2, a polynomial for 2^f (relative error 2e-7 with
// degree 5, 4e-6 with degree 4), then i is added to the exponent.
__device__ __forceinline__ float exp2_polynomial(float x) {
    const float magic = 12582912.0f; // 1.5 * 2^23: rounds to whole numbers
    x = fmaxf(x, -125.0f);
    float shifted = x + magic;
    float f = x - (shifted - magic);
#if PARTS == 1
    float p = 9.6181291e-3f;
#else
    float p = fmaf(f, 1.3333558e-3f, 9.6181291e-3f);
#endif
    p = fmaf(p, f, 5.5504109e-2f);
    p = fmaf(p, f, 2.4022651e-1f);
    p = fmaf(p, f, 6.9314718e-1f);
    p = fmaf(p, f, 1.0f);
    return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}

__device__ __forceinline__ float exp2_any(float x, int entry) {
#if POLYNOMIAL_EVERY > 0
    if (entry % POLYNOMIAL_EVERY == 0) return exp2_polynomial(x);
#endif
    return exp2_unit(x);
}

__device__ __forceinline__ float root(float x) {
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// 2^SHIFT times the kernel value; `x` is what `distances` left for it, `entry` only spreads the
// work.
__device__ __forceinline__ float kernel_value(float x, int entry) {
    if (KIND == RBF || KIND == LAPLACE) return exp2_any(x, entry);
    float t = root(fmaxf(-x, 0.0f));
    float e = exp2_any(fmaf(t, -LOG2E, SHIFT), entry);
    if (KIND == MATERN32) return fmaf(e, t, e);
    return e * fmaf(t, fmaf(t, 0.33333333f, 1.0f), 1.0f);
}

// What a tile needs of memory, and where its parts lie in shared memory.
struct Layout {
    char* rows;      // feature chunks of the tile's rows
    char* columns;   // ring of stages with feature chunks of the tile's columns
    char* v_rows;    // V of the rows
    char* v_columns; // V of the columns, two of them in turn
    float* s_rows;
    float* s_columns; // two of them in turn
    float* row_sums;  // [COLUMN_WARPS][TILE][SUMS]
    float* column_sums; // [2 row warps][group rows][SUMS]
};

// Rows and columns come from panels of tiles: chunks x rows x CHUNK, each part (or f32) apart. All samples are
// one panel where they fit.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
fused(const char* __restrict__ row_panel, u64 row_padded, int row_first, // the panel's rows, its first tile
      const char* __restrict__ column_panel, u64 column_padded, int column_first,
      const float* __restrict__ half_norms,
      const char* __restrict__ v,        // tiles x GROUPS x 8 x TILE in f16
      float* __restrict__ row_partials,  // [a - first][b][group rows][n]
      float* __restrict__ column_partials,
      int n,            // columns of V in this pass
      int n_tiles,      // of all rows
      int group_tiles,  // tiles a side of a pair
      int n_groups, int first,  // of the partial sums' a
      int a_first, int b_first, // the launch covers a = a_first + blockIdx.x, b = b_first + blockIdx.y
      int chunks, int stage_chunks, int stages,
      int resident)     // whether all chunks of a tile's rows stay in shared memory
{
    extern __shared__ __align__(128) char shared[];
    const int a = a_first + blockIdx.x, b = b_first + blockIdx.y;
    if (a > b) return;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int row_half = warp / COLUMN_WARPS, column_part = warp % COLUMN_WARPS;
    const int g = lane >> 2, t = lane & 3;
    const int stage_bytes = stage_chunks * CHUNK_BYTES;
    const int steps = (chunks + stage_chunks - 1) / stage_chunks;
    const int group_rows = group_tiles * TILE;
    // Rows that are streamed share the ring of the columns: each stage holds both.
    const int row_bytes = resident ? chunks * CHUNK_BYTES : stages * stage_bytes;

    Layout at;
    at.rows = shared;
    at.columns = at.rows + row_bytes;
    at.v_rows = at.columns + stages * stage_bytes;
    at.v_columns = at.v_rows + V_BYTES;
    at.s_rows = (float*)(at.v_columns + 2 * V_BYTES);
    at.s_columns = at.s_rows + TILE;
    at.row_sums = at.s_columns + 2 * TILE;
    at.column_sums = at.row_sums + COLUMN_WARPS * TILE * SUMS;

    // Copies one chunk of a tile's features, the tile counted from the first of its panel.
    auto copy_chunk = [&](char* to, const char* features, u64 padded, int tile, int chunk) {
        u32 address = shared_address(to);
        if (KIND == LAPLACE) {
            // [chunk][feature][row] in f32.
            const char* from = features + (((u64)chunk * CHUNK) * padded + (u64)tile * TILE) * 4;
#pragma unroll
            for (int i = 0; i < CHUNK_BYTES / 16 / THREADS; i++) {
                int unit = thread + i * THREADS; // 32 units of 16 bytes a feature
                copy16(address + unit * 16, from + (u64)(unit >> 5) * padded * 4 + (unit & 31) * 16);
            }
        } else {
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                const char* from = features + (((u64)part * chunks + chunk) * padded + (u64)tile * TILE) * (CHUNK * 2);
#pragma unroll
                for (int i = 0; i < PART_BYTES / 16 / THREADS; i++) {
                    int unit = thread + i * THREADS;
                    copy16(address + part * PART_BYTES + unit * 16, from + unit * 16);
                }
            }
        }
    };
    auto copy_v = [&](char* to, int tile) {
#pragma unroll
        for (int unit = thread; unit < GROUPS * TILE; unit += THREADS) // TILE / 8 units a row
            copy16(shared_address(to) + unit / (TILE / 8) * V_ROW + unit % (TILE / 8) * 16,
                   v + ((u64)tile * GROUPS * TILE + unit) * 16);
    };
    auto copy_norms = [&](float* to, int tile) {
        if (KIND != LAPLACE && thread < TILE / 4)
            copy16(shared_address(to) + thread * 16, half_norms + (u64)tile * TILE + thread * 4);
    };

    for (int i = thread; i < 2 * group_rows * SUMS; i += THREADS) at.column_sums[i] = 0.0f;

    const int b_begin = b * group_tiles, b_last = min(b_begin + group_tiles, n_tiles);
    const int a_last = min((a + 1) * group_tiles, n_tiles);
    for (int row_tile = a * group_tiles; row_tile < a_last; row_tile++) {
        const int j_first = a == b ? row_tile : b_begin;
        const int total = (b_last - j_first) * steps;
        __syncthreads(); // the last tile's readers are done with what is overwritten now
        for (int i = thread; i < COLUMN_WARPS * TILE * SUMS; i += THREADS) at.row_sums[i] = 0.0f;
        copy_v(at.v_rows, row_tile);
        copy_norms(at.s_rows, row_tile);
        if (resident)
            for (int c = 0; c < chunks; c++)
                copy_chunk(at.rows + c * CHUNK_BYTES, row_panel, row_padded, row_tile - row_first, c);

        // Step s is the part `s % steps` of the features for the column tile `s / steps`.
        auto prefetch = [&](int s) {
            if (s < total) {
                int j = s / steps, part = s - j * steps, slot = s % stages;
                int c0 = part * stage_chunks, c1 = min(c0 + stage_chunks, chunks);
                for (int c = c0; c < c1; c++) {
                    int offset = slot * stage_bytes + (c - c0) * CHUNK_BYTES;
                    copy_chunk(at.columns + offset, column_panel, column_padded, j_first + j - column_first, c);
                    if (!resident) copy_chunk(at.rows + offset, row_panel, row_padded, row_tile - row_first, c);
                }
                if (part == 0) {
                    copy_v(at.v_columns + (j & 1) * V_BYTES, j_first + j);
                    copy_norms(at.s_columns + (j & 1) * TILE, j_first + j);
                }
            }
            asm volatile("cp.async.commit_group;");
        };
        for (int s = 0; s < stages - 1; s++) prefetch(s);

        int step = 0;
        for (int j = j_first; j < b_last; j++) {
            float x[4][EIGHTS][4]; // 64 x COLUMNS: [16 rows][8 columns][fragment]
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int c = 0; c < EIGHTS; c++)
#pragma unroll
                    for (int k = 0; k < 4; k++) x[m][c][k] = 0.0f;

            for (int part = 0; part < steps; part++, step++) {
                if (stages == 2) asm volatile("cp.async.wait_group 0;");
                else if (stages == 3) asm volatile("cp.async.wait_group 1;");
                else asm volatile("cp.async.wait_group 2;");
                __syncthreads();
                prefetch(step + stages - 1);
                const int slot = step % stages;
                const int c0 = part * stage_chunks, c1 = min(c0 + stage_chunks, chunks);
                for (int c = c0; c < c1; c++) {
                    const int offset = slot * stage_bytes + (c - c0) * CHUNK_BYTES;
                    const char* row_chunk = at.rows + (resident ? c * CHUNK_BYTES : offset);
                    const char* column_chunk = at.columns + offset;
#if KIND == LAPLACE
                    const float* p = (const float*)row_chunk + row_half * 64 + g;
                    const float* q = (const float*)column_chunk + column_part * COLUMNS + 2 * t;
#pragma unroll 2
                    for (int f = 0; f < CHUNK; f++) {
                        float rows[8];
#pragma unroll
                        for (int i = 0; i < 8; i++) rows[i] = p[f * TILE + i * 8];
#pragma unroll
                        for (int nt = 0; nt < EIGHTS; nt++) {
                            float2 y = *(const float2*)(q + f * TILE + nt * 8);
#pragma unroll
                            for (int m = 0; m < 4; m++) {
                                x[m][nt][0] += fabsf(rows[2 * m] - y.x);
                                x[m][nt][1] += fabsf(rows[2 * m] - y.y);
                                x[m][nt][2] += fabsf(rows[2 * m + 1] - y.x);
                                x[m][nt][3] += fabsf(rows[2 * m + 1] - y.y);
                            }
                        }
                    }
#else
                    // Rows of 32 bytes; their halves are swapped in every other group of four rows
                    // (as `pack` wrote them), which keeps eight rows in eight different banks.
                    const u32 swap = (lane >> 2) & 1;
                    const u32 p = shared_address(row_chunk) + row_half * 64 * 32 + (lane & 15) * 32
                        + (((lane >> 4) ^ swap) << 4);
                    const u32 q = shared_address(column_chunk) + column_part * COLUMNS * 32
                        + ((lane & 7) + ((lane >> 4) << 3)) * 32 + ((((lane >> 3) & 1) ^ swap) << 4);
                    u32 columns[PAIRS][4];
#pragma unroll
                    for (int i = 0; i < PAIRS; i++) load_matrices(columns[i], q + i * 512);
#if PARTS == 2
                    u32 columns_low[PAIRS][4];
#pragma unroll
                    for (int i = 0; i < PAIRS; i++) load_matrices(columns_low[i], q + PART_BYTES + i * 512);
#endif
#pragma unroll
                    for (int m = 0; m < 4; m++) {
                        u32 rows[4];
                        load_matrices(rows, p + m * 512);
#if PARTS == 2
                        // Small products first.
                        u32 rows_low[4];
                        load_matrices(rows_low, p + PART_BYTES + m * 512);
#pragma unroll
                        for (int i = 0; i < PAIRS; i++) {
                            multiply(x[m][2 * i], rows_low, columns[i][0], columns[i][1]);
                            multiply(x[m][2 * i + 1], rows_low, columns[i][2], columns[i][3]);
                        }
#pragma unroll
                        for (int i = 0; i < PAIRS; i++) {
                            multiply(x[m][2 * i], rows, columns_low[i][0], columns_low[i][1]);
                            multiply(x[m][2 * i + 1], rows, columns_low[i][2], columns_low[i][3]);
                        }
#endif
#pragma unroll
                        for (int i = 0; i < PAIRS; i++) {
                            multiply(x[m][2 * i], rows, columns[i][0], columns[i][1]);
                            multiply(x[m][2 * i + 1], rows, columns[i][2], columns[i][3]);
                        }
                    }
#endif
                }
            }

            // x_ij = a_i·a_j - s_i - s_j, or minus the scaled 1-norm.
            const float* s_columns = at.s_columns + ((j - j_first) & 1) * TILE + column_part * COLUMNS + 2 * t;
            const float* s_rows = at.s_rows + row_half * 64 + g;
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int c = 0; c < EIGHTS; c++) {
                    if (KIND == LAPLACE) {
#pragma unroll
                        for (int k = 0; k < 4; k++) x[m][c][k] = SHIFT - x[m][c][k];
                    } else {
                        float2 s = *(const float2*)(s_columns + c * 8);
                        float upper = s_rows[m * 16], lower = s_rows[m * 16 + 8];
                        x[m][c][0] = (x[m][c][0] - upper) - s.x;
                        x[m][c][1] = (x[m][c][1] - upper) - s.y;
                        x[m][c][2] = (x[m][c][2] - lower) - s.x;
                        x[m][c][3] = (x[m][c][3] - lower) - s.y;
                    }
                }
            const bool diagonal = j == row_tile;
            if (diagonal) {
                // A sample is at distance zero from itself, whatever rounding says.
                const float zero = KIND == RBF || KIND == LAPLACE ? SHIFT : 0.0f;
                const int ahead = row_half * 64 + g - column_part * COLUMNS - 2 * t;
#pragma unroll
                for (int m = 0; m < 4; m++)
#pragma unroll
                    for (int c = 0; c < EIGHTS; c++)
#pragma unroll
                        for (int k = 0; k < 4; k++)
                            if (ahead + m * 16 + (k >> 1) * 8 == c * 8 + (k & 1)) x[m][c][k] = zero;
            }

            // K in fragments of 16 x 16, times V on both sides.
            const u32* v_columns = (const u32*)(at.v_columns + ((j - j_first) & 1) * V_BYTES)
                + g * (V_ROW / 4) + column_part * (COLUMNS / 2) + t;
            const u32* v_rows = (const u32*)at.v_rows + g * (V_ROW / 4) + row_half * 32 + t;
            float by_column[PAIRS][GROUPS][4];
#pragma unroll
            for (int i = 0; i < PAIRS; i++)
#pragma unroll
                for (int group = 0; group < GROUPS; group++)
#pragma unroll
                    for (int k = 0; k < 4; k++) by_column[i][group][k] = 0.0f;

            // Adds a fragment of sums (16 rows x [4 hi | 4 lo]) to the words this lane owns.
            auto add = [&](float* sums, const float (&d)[4]) {
                const bool left = t < 2;
                float other0 = __shfl_xor_sync(0xffffffffu, left ? d[2] : d[0], 2);
                float other1 = __shfl_xor_sync(0xffffffffu, left ? d[3] : d[1], 2);
                float2* word = (float2*)(sums + (g + (left ? 0 : 8)) * SUMS + (t & 1) * 2);
                float2 sum = *word;
                sum.x += (left ? d[0] : d[2]) + other0;
                sum.y += (left ? d[1] : d[3]) + other1;
                *word = sum;
            };

#pragma unroll
            for (int m = 0; m < 4; m++) {
                float by_row[GROUPS][4];
#pragma unroll
                for (int group = 0; group < GROUPS; group++)
#pragma unroll
                    for (int k = 0; k < 4; k++) by_row[group][k] = 0.0f;
#pragma unroll
                for (int i = 0; i < PAIRS; i++) {
                    float k[8];
#pragma unroll
                    for (int e = 0; e < 8; e++)
                        k[e] = kernel_value(x[m][2 * i + (e >> 2)][e & 3], e + 8 * i);
                    u32 high[4] = {packed(k[0], k[1]), packed(k[2], k[3]), packed(k[4], k[5]), packed(k[6], k[7])};
                    u32 high_t[4] = {transposed(high[0]), transposed(high[2]), transposed(high[1]), transposed(high[3])};
#if PARTS == 2
                    u32 low[4] = {remainder(k[0], k[1], high[0]), remainder(k[2], k[3], high[1]),
                                  remainder(k[4], k[5], high[2]), remainder(k[6], k[7], high[3])};
                    u32 low_t[4] = {transposed(low[0]), transposed(low[2]), transposed(low[1]), transposed(low[3])};
#endif
#pragma unroll
                    for (int group = 0; group < GROUPS; group++) {
                        const u32* vc = v_columns + group * 8 * (V_ROW / 4) + i * 8;
                        const u32* vr = v_rows + group * 8 * (V_ROW / 4) + m * 8;
                        u32 c0 = vc[0], c1 = vc[4], r0 = vr[0], r1 = vr[4];
#if PARTS == 2
                        multiply(by_row[group], low, c0, c1);
                        multiply(by_column[i][group], low_t, r0, r1);
#endif
                        multiply(by_row[group], high, c0, c1);
                        multiply(by_column[i][group], high_t, r0, r1);
                    }
                }
#pragma unroll
                for (int group = 0; group < GROUPS; group++)
                    add(at.row_sums + (column_part * TILE + row_half * 64 + m * 16) * SUMS + group * 4, by_row[group]);
            }
            if (!diagonal) {
                float* sums = at.column_sums
                    + ((u64)row_half * group_rows + (j - b_begin) * TILE + column_part * COLUMNS) * SUMS;
#pragma unroll
                for (int i = 0; i < PAIRS; i++)
#pragma unroll
                    for (int group = 0; group < GROUPS; group++)
                        add(sums + i * 16 * SUMS + group * 4, by_column[i][group]);
            }
        }

        __syncthreads();
        float* out = row_partials
            + (((u64)(a - first) * n_groups + b) * group_rows + (row_tile - a * group_tiles) * TILE) * n;
        for (int i = thread; i < TILE * n; i += THREADS) {
            int word = (i / n) * SUMS + i % n;
            float sum = 0.0f;
#pragma unroll
            for (int part = 0; part < COLUMN_WARPS; part++) sum += at.row_sums[part * TILE * SUMS + word];
            out[i] = sum;
        }
    }

    float* out = column_partials + ((u64)(a - first) * n_groups + b) * group_rows * n;
    for (int i = thread; i < group_rows * n; i += THREADS) {
        int word = (i / n) * SUMS + i % n;
        out[i] = at.column_sums[word] + at.column_sums[group_rows * SUMS + word];
    }
}
