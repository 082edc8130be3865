// K·V in f64 for kernels of the Euclidean distance, on the f64 tensor cores: |a - b|² = |a|² + |b|² - 2a·b of
// centred features. In f64 that loses 1e-16 of the squared norms, far below what a certificate resolves.

typedef unsigned int u32;
typedef unsigned long long u64;

#ifndef WIDTH
#define WIDTH 4 // columns of V in a pass
#endif

constexpr int ROWS = 128;   // of a block: 8 warps with 16 each
constexpr int COLUMNS = 64; // of a tile
constexpr int THREADS = 256;
constexpr int CHUNK = 16;
constexpr int PITCH = CHUNK + 4; // eight rows begin in different banks
constexpr int STAGE = (ROWS + COLUMNS) * PITCH;
constexpr int MAX_TERMS = 8;

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

__device__ __forceinline__ void copy16(u32 to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

__device__ __forceinline__ void multiply(double (&d)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
}

// partials[strip][row][c], as `exact_product` in exact.cu has them, without the linear part.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
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
