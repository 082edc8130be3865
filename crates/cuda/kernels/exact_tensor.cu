// K·V in f64 for kernels of the Euclidean distance, on the f64 tensor cores: |a - b|² = |a|² + |b|² - 2a·b of
// centred features. In f64 that loses 1e-16 of the squared norms, far below what a certificate resolves.

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef WIDTH
#define WIDTH 4 // columns of V in a pass
#endif
// Whether the kernel is one rbf: its exponentials then stand where they are used, which saves the registers of a call.
#ifndef SINGLE
#define SINGLE 0
#endif

constexpr int ROWS = 128;   // of a block: 8 warps with 16 each
constexpr int COLUMNS = 64; // of a tile
constexpr int THREADS = 256;
constexpr int CHUNK = 16;
constexpr int PITCH = CHUNK + 4; // eight rows begin in different banks
constexpr int STAGE = (ROWS + COLUMNS) * PITCH;
constexpr int MAX_TERMS = 8;
constexpr int GROUP = 512; // rows of a group, two of which make a pair
constexpr int BLOCKS = SINGLE && WIDTH == 4 ? 2 : 1; // that share a multiprocessor

// As in exact.cu.
struct Terms {
    double weight[MAX_TERMS];
    double rate[MAX_TERMS];
    int kind[MAX_TERMS];
    int count;
    double linear;
    double constant;
};

// Features less their means, rows padded with zeros to `pitch` features, and their squared norms. One thread a row.
extern "C" __global__ void centre(const double* features, const double* means, double* out, double* norms,
                                  u64 n_samples, u64 padded, int n_features, int pitch) {
    const u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= padded) return;
    double norm = 0.0;
    for (int k = 0; k < pitch; k++) {
        double z = row < n_samples && k < n_features ? features[row * n_features + k] - means[k] : 0.0;
        out[row * pitch + k] = z;
        norm = fma(z, z, norm);
    }
    norms[row] = norm;
}

#if SINGLE
__device__ __forceinline__ double4 kernel_values(const Terms* terms, double x0, double x1, double x2, double x3) {
    const double rate = -terms->rate[0], weight = terms->weight[0];
    return make_double4(weight * exp(rate * fmax(x0, 0.0)), weight * exp(rate * fmax(x1, 0.0)),
                        weight * exp(rate * fmax(x2, 0.0)), weight * exp(rate * fmax(x3, 0.0)));
}
#else
// Four values at once, so that their chains of operations overlap; not inlined, or they would be most of the code.
__device__ __noinline__ double4 kernel_values(const Terms* terms, double x0, double x1, double x2, double x3) {
    const double x[4] = {fmax(x0, 0.0), fmax(x1, 0.0), fmax(x2, 0.0), fmax(x3, 0.0)};
    double sum[4] = {};
    for (int i = 0; i < terms->count; i++) {
        const double rate = terms->rate[i], weight = terms->weight[i];
        const int kind = terms->kind[i];
        double t[4], factor[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            t[k] = rate * x[k];
            factor[k] = weight;
            if (kind != 0) {
                t[k] = sqrt(t[k]);
                factor[k] = weight * (kind == 2 ? 1.0 + t[k] : 1.0 + t[k] + t[k] * t[k] / 3.0);
            }
        }
#pragma unroll
        for (int k = 0; k < 4; k++) sum[k] = fma(factor[k], exp(-t[k]), sum[k]);
    }
    return make_double4(sum[0], sum[1], sum[2], sum[3]);
}
#endif

__device__ __forceinline__ void copy16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void multiply(double (&d)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
}

// partials[strip][row][c], as `exact_product` in exact.cu has them, without the linear part.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
exact_tensor(const double* row_centred, const double* row_norms, u64 n_rows, const double* centred,
             const double* norms, u64 n_samples, const double* v, double* partials, int pitch, int n_columns,
             int first, int width, u64 strip_columns, int same, // whether rows and columns are the same samples
             const __grid_constant__ Terms terms) {
    extern __shared__ __align__(128) double shared[];
    double* v_tile = shared + 2 * STAGE; // [COLUMNS][WIDTH]
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int g = lane >> 2, t = lane & 3;
    const u64 first_row = (u64)blockIdx.x * ROWS;
    const u64 begin = blockIdx.y * strip_columns, end = min(begin + strip_columns, n_samples);
    const int chunks = pitch / CHUNK;
    const int tiles = (int)((end - begin + COLUMNS - 1) / COLUMNS), total = tiles * chunks;

    auto prefetch = [&](int step) {
        if (step < total) {
            const u64 column = begin + (u64)(step / chunks) * COLUMNS;
            const int k0 = step % chunks * CHUNK;
            double* stage = shared + (step & 1) * STAGE;
            for (int unit = thread; unit < (ROWS + COLUMNS) * (CHUNK / 2); unit += THREADS) {
                const int r = unit / (CHUNK / 2), k = unit % (CHUNK / 2) * 2;
                const double* from = r < ROWS ? row_centred + (first_row + r) * pitch
                                              : centred + (column + r - ROWS) * pitch;
                copy16((u32)__cvta_generic_to_shared(stage + r * PITCH + k), from + k0 + k);
            }
        }
        asm volatile("cp.async.commit_group;");
    };

    const u64 row0 = first_row + warp * 16 + g;
    // A sample is at distance zero from itself, whatever rounding says.
    const u64 twin = same ? row0 : ~0ull - 8;
    const double norm[2] = {row_norms[row0], row_norms[row0 + 8]};
    double sums[2][WIDTH] = {};
    prefetch(0);
    for (int tile = 0, step = 0; tile < tiles; tile++) {
        const u64 column = begin + (u64)tile * COLUMNS;
        double x[2][8][2] = {};
        for (int chunk = 0; chunk < chunks; chunk++, step++) {
            asm volatile("cp.async.wait_group 0;");
            __syncthreads();
            prefetch(step + 1);
            if (chunk == 0)
                for (int i = thread; i < COLUMNS * WIDTH; i += THREADS) {
                    const u64 j = column + i / WIDTH;
                    const int c = i % WIDTH;
                    v_tile[i] = j < end && c < width ? v[j * n_columns + first + c] : 0.0;
                }
            const double* stage = shared + (step & 1) * STAGE;
            const double* p = stage + (warp * 16 + g) * PITCH + t;
            const double* q = stage + (ROWS + g) * PITCH + t;
#pragma unroll
            for (int k = 0; k < CHUNK; k += 4) {
                const double a0 = p[k], a1 = p[8 * PITCH + k];
#pragma unroll
                for (int n = 0; n < 8; n++) {
                    const double b = q[n * 8 * PITCH + k];
                    multiply(x[0][n], a0, b);
                    multiply(x[1][n], a1, b);
                }
            }
        }
        if (chunks == 1) __syncthreads(); // v_tile was written after the only barrier
#pragma unroll
        for (int n = 0; n < 8; n++) {
            const u64 j = column + n * 8 + 2 * t;
            const double2 other = *(const double2*)(norms + j);
            double s00 = twin == j ? 0.0 : norm[0] + other.x - 2.0 * x[0][n][0];
            double s01 = twin == j + 1 ? 0.0 : norm[0] + other.y - 2.0 * x[0][n][1];
            double s10 = twin + 8 == j ? 0.0 : norm[1] + other.x - 2.0 * x[1][n][0];
            double s11 = twin + 8 == j + 1 ? 0.0 : norm[1] + other.y - 2.0 * x[1][n][1];
            const double4 k = kernel_values(&terms, s00, s01, s10, s11);
#pragma unroll
            for (int c = 0; c < WIDTH; c++) {
                const double v0 = v_tile[(n * 8 + 2 * t) * WIDTH + c], v1 = v_tile[(n * 8 + 2 * t + 1) * WIDTH + c];
                sums[0][c] = fma(k.x, v0, fma(k.y, v1, sums[0][c]));
                sums[1][c] = fma(k.z, v0, fma(k.w, v1, sums[1][c]));
            }
        }
        // The next tile overwrites v_tile after its first barrier, which no warp passes before this point.
    }
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int c = 0; c < WIDTH; c++) {
            double sum = sums[r][c];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            const u64 row = row0 + 8 * r;
            if (t == 0 && row < n_rows && c < width)
                partials[((u64)blockIdx.y * n_rows + row) * width + c] = sum;
        }
}

// Adds up the values of the eight lanes that share t, and shares the sums out: those from g * COUNT / 8 on are left
// with lane g. Each step halves what a lane has to add.
template <int COUNT>
__device__ __forceinline__ void share_sums(double (&values)[COUNT], int g) {
#pragma unroll
    for (int step = 4, half = COUNT / 2; step > 0; step /= 2, half /= 2) {
        const bool upper = g & step;
#pragma unroll
        for (int i = 0; i < COUNT / 2; i++)
            if (i < half) {
                const double away = upper ? values[i] : values[i + half];
                const double kept = upper ? values[i + half] : values[i];
                values[i] = kept + __shfl_xor_sync(0xffffffffu, away, 4 * step);
            }
    }
}

// The same product for samples with themselves, each value computed once: a block owns a pair of groups a <= b and
// adds K v_b to the rows of a, K' v_a to those of b. partials[a - first][b][row of the group][c], for both.
// Rows and columns come from panels of whole groups, of which the first sample is given: all samples are one panel
// where they fit. The launch covers a = a_begin + blockIdx.x, b = b_begin + blockIdx.y.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
exact_pairs(const double* row_panel, u64 row_begin, const double* column_panel, u64 column_begin, const double* norms,
            u64 n_samples, const double* v, double* row_partials, double* column_partials, int pitch, int n_columns,
            int first_column, int width, int n_groups, int first, int a_begin, int b_begin,
            const __grid_constant__ Terms terms) {
    extern __shared__ __align__(128) double shared[];
    double* v_columns = shared + 2 * STAGE;              // [COLUMNS][WIDTH]
    double* v_rows = v_columns + COLUMNS * WIDTH;        // [ROWS][WIDTH]
    double* warp_sums = v_rows + ROWS * WIDTH;           // [8 warps][COLUMNS][WIDTH]
    double* column_sums = warp_sums + 8 * COLUMNS * WIDTH; // [GROUP][WIDTH]
    const int a = a_begin + blockIdx.x, b = b_begin + blockIdx.y;
    if (a > b) return;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int g = lane >> 2, t = lane & 3;
    const u64 padded = (n_samples + ROWS - 1) / ROWS * ROWS;
    const u64 a_first = (u64)a * GROUP, b_first = (u64)b * GROUP;
    const int row_tiles = (int)(min((u64)GROUP, padded - a_first) / ROWS);
    const int tiles = (int)(min((u64)GROUP, padded - b_first) / COLUMNS);
    const int chunks = pitch / CHUNK, total = tiles * chunks;
    const u64 pair = ((u64)(a - first) * n_groups + b) * GROUP;
    for (int i = thread; i < GROUP * WIDTH; i += THREADS) column_sums[i] = 0.0;

    for (int row_tile = 0; row_tile < row_tiles; row_tile++) {
        const u64 first_row = a_first + row_tile * ROWS;
        auto prefetch = [&](int step) {
            if (step < total) {
                const u64 column = b_first + (u64)(step / chunks) * COLUMNS;
                const int k0 = step % chunks * CHUNK;
                double* stage = shared + (step & 1) * STAGE;
                for (int unit = thread; unit < (ROWS + COLUMNS) * (CHUNK / 2); unit += THREADS) {
                    const int r = unit / (CHUNK / 2), k = unit % (CHUNK / 2) * 2;
                    const double* from = r < ROWS ? row_panel + (first_row + r - row_begin) * pitch
                                                  : column_panel + (column + r - ROWS - column_begin) * pitch;
                    copy16((u32)__cvta_generic_to_shared(stage + r * PITCH + k), from + k0 + k);
                }
            }
            asm volatile("cp.async.commit_group;");
        };
        __syncthreads(); // the last row tile is done with what is overwritten now
        for (int i = thread; i < ROWS * WIDTH; i += THREADS) {
            const u64 row = first_row + i / WIDTH;
            const int c = i % WIDTH;
            v_rows[i] = row < n_samples && c < width ? v[row * n_columns + first_column + c] : 0.0;
        }
        const u64 row0 = first_row + warp * 16 + g;
        const double norm[2] = {norms[row0], norms[row0 + 8]};
        double sums[2][WIDTH] = {};
        prefetch(0);
        for (int tile = 0, step = 0; tile < tiles; tile++) {
            const u64 column = b_first + (u64)tile * COLUMNS;
            double x[2][8][2] = {};
            for (int chunk = 0; chunk < chunks; chunk++, step++) {
                asm volatile("cp.async.wait_group 0;");
                __syncthreads();
                prefetch(step + 1);
                if (chunk == 0)
                    for (int i = thread; i < COLUMNS * WIDTH; i += THREADS) {
                        const u64 j = column + i / WIDTH;
                        const int c = i % WIDTH;
                        v_columns[i] = j < n_samples && c < width ? v[j * n_columns + first_column + c] : 0.0;
                    }
                const double* stage = shared + (step & 1) * STAGE;
                const double* p = stage + (warp * 16 + g) * PITCH + t;
                const double* q = stage + (ROWS + g) * PITCH + t;
#pragma unroll
                for (int k = 0; k < CHUNK; k += 4) {
                    const double a0 = p[k], a1 = p[8 * PITCH + k];
#pragma unroll
                    for (int n = 0; n < 8; n++) {
                        const double y = q[n * 8 * PITCH + k];
                        multiply(x[0][n], a0, y);
                        multiply(x[1][n], a1, y);
                    }
                }
            }
            if (chunks == 1) __syncthreads(); // v_columns was written after the only barrier
            const double* above = v_rows + (warp * 16 + g) * WIDTH;
#pragma unroll
            for (int n = 0; n < 8; n++) {
                const u64 j = column + n * 8 + 2 * t;
                const double2 other = *(const double2*)(norms + j);
                double s00 = row0 == j ? 0.0 : norm[0] + other.x - 2.0 * x[0][n][0];
                double s01 = row0 == j + 1 ? 0.0 : norm[0] + other.y - 2.0 * x[0][n][1];
                double s10 = row0 + 8 == j ? 0.0 : norm[1] + other.x - 2.0 * x[1][n][0];
                double s11 = row0 + 8 == j + 1 ? 0.0 : norm[1] + other.y - 2.0 * x[1][n][1];
                const double4 k = kernel_values(&terms, s00, s01, s10, s11);
                const double* beside = v_columns + (n * 8 + 2 * t) * WIDTH;
                double down[2 * WIDTH];
#pragma unroll
                for (int c = 0; c < WIDTH; c++) {
                    sums[0][c] = fma(k.x, beside[c], fma(k.y, beside[WIDTH + c], sums[0][c]));
                    sums[1][c] = fma(k.z, beside[c], fma(k.w, beside[WIDTH + c], sums[1][c]));
                    down[c] = fma(k.x, above[c], k.z * above[8 * WIDTH + c]);
                    down[WIDTH + c] = fma(k.y, above[c], k.w * above[8 * WIDTH + c]);
                }
                if (a != b) {
                    share_sums(down, g);
                    // Lane g is left with columns of V (g & 3) * WIDTH / 4 and on, of sample 2t + (g >> 2).
                    double* to = warp_sums + (warp * COLUMNS + n * 8 + 2 * t + (g >> 2)) * WIDTH + (g & 3) * (WIDTH / 4);
#pragma unroll
                    for (int i = 0; i < WIDTH / 4; i++) to[i] = down[i];
                }
            }
            if (a != b) {
                __syncthreads();
                for (int i = thread; i < COLUMNS * WIDTH; i += THREADS) {
                    double sum = 0.0;
                    for (int w = 0; w < 8; w++) sum += warp_sums[w * COLUMNS * WIDTH + i];
                    column_sums[tile * COLUMNS * WIDTH + i] += sum;
                }
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int c = 0; c < WIDTH; c++) {
                double sum = sums[r][c];
                sum += __shfl_xor_sync(0xffffffffu, sum, 1);
                sum += __shfl_xor_sync(0xffffffffu, sum, 2);
                if (t == 0 && c < width)
                    row_partials[(pair + row_tile * ROWS + warp * 16 + g + 8 * r) * width + c] = sum;
            }
    }
    __syncthreads();
    for (int i = thread; i < GROUP * WIDTH; i += THREADS)
        if (i % WIDTH < width) column_partials[(pair + i / WIDTH) * width + i % WIDTH] = column_sums[i];
}

// out += the column partials of a row over a, then its row partials over b, in this order. One thread a row and column.
extern "C" __global__ void add_pairs(const double* row_partials, const double* column_partials, double* out,
                                     u64 n_samples, int n_columns, int first_column, int width, int n_groups, int first,
                                     int count) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u64 row = (u64)first * GROUP + i / width;
    const int c = i % width;
    if (row >= n_samples) return;
    const int group = row / GROUP;
    const u64 local = row % GROUP;
    double sum = 0.0;
    const int last = min(first + count, group);
    for (int a = first; a < last; a++)
        sum += column_partials[(((u64)(a - first) * n_groups + group) * GROUP + local) * width + c];
    if (group < first + count)
        for (int b = group; b < n_groups; b++)
            sum += row_partials[(((u64)(group - first) * n_groups + b) * GROUP + local) * width + c];
    out[row * n_columns + first_column + c] += sum;
}
