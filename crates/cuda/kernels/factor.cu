// The preconditioner on the GPU: K ~ B'B with B in f32, (lambda I + B_F B_F')^-1 in f64 for the free
// samples F of each dimension, and what conjugate gradients need of both.
//
// B lies row by row, `pitch` numbers each, zero beyond the last sample; matrices of rank x rank lie in
// squares of `side` rows, a multiple of 64. Nothing is added in an order that changes between runs.

typedef unsigned char u8;
typedef unsigned long long u64;

constexpr int TILE = 64;   // rows and columns of a block's product: 4 warps with 32 x 32 each
constexpr int CHUNK = 16;  // what a step takes of the dimension summed over
constexpr int PITCH = CHUNK + 4; // four rows begin in different banks
constexpr int WIDE = TILE + 4;
constexpr int THREADS = 128;

__device__ __forceinline__ void multiply(double (&d)[2], double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
}

// A warp's 32 x 32 part of a product of 64 x 16 and 16 x 64 numbers in shared memory.
struct Part {
    double sums[4][4][2];
    int row, column, g, t;

    __device__ Part() {
        const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
        row = warp / 2 * 32, column = warp % 2 * 32, g = lane >> 2, t = lane & 3;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) sums[i][j][0] = sums[i][j][1] = 0.0;
    }

    // `a`: [64][PITCH]. `b`: [64][PITCH], to be transposed, or [16][WIDE].
    template <bool TRANSPOSED>
    __device__ __forceinline__ void add(const double* a, const double* b) {
#pragma unroll
        for (int k = 0; k < CHUNK; k += 4) {
            double p[4], q[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                p[i] = a[(row + i * 8 + g) * PITCH + k + t];
                q[i] = TRANSPOSED ? b[(column + i * 8 + g) * PITCH + k + t] : b[(k + t) * WIDE + column + i * 8 + g];
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) multiply(sums[i][j], p[i], q[j]);
        }
    }

    // Calls `use(row, column, value)` for each number of this thread.
    template <class Use>
    __device__ __forceinline__ void each(Use use) const {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) use(row + i * 8 + g, column + j * 8 + 2 * t + e, sums[i][j][e]);
    }
};

__device__ __forceinline__ void widen(double* to, float4 x) {
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}

// partials[z][i][j] = sum over the columns s of strip z of b_is b_js, for tiles on and below the diagonal.
// A strip is a multiple of 16 columns, the last of all `count` perhaps shorter but one as well.
extern "C" __global__ void __launch_bounds__(THREADS)
gram_partials(const float* b, u64 pitch, u64 count, u64 strip, double* partials, int side) {
    __shared__ __align__(16) double rows[2][TILE * PITCH], columns[2][TILE * PITCH];
    if (blockIdx.y > blockIdx.x) return;
    const u64 begin = blockIdx.z * strip, end = min(begin + strip, count);
    const int r = threadIdx.x / 4, k = threadIdx.x % 4 * 4;
    const float* a_from = b + ((u64)blockIdx.x * TILE + r) * pitch + begin + k;
    const float* b_from = b + ((u64)blockIdx.y * TILE + r) * pitch + begin + k;
    float4 p[2], q[2];
    auto load = [&](u64 at) {
        for (int h = 0; h < 2; h++) {
            p[h] = *(const float4*)(a_from + (u64)(32 * h) * pitch + at);
            q[h] = *(const float4*)(b_from + (u64)(32 * h) * pitch + at);
        }
    };
    auto store = [&](int stage) {
        for (int h = 0; h < 2; h++) {
            widen(rows[stage] + (r + 32 * h) * PITCH + k, p[h]);
            widen(columns[stage] + (r + 32 * h) * PITCH + k, q[h]);
        }
    };
    Part part;
    int stage = 0;
    if (begin < end) {
        load(0);
        store(0);
    }
    __syncthreads();
    for (u64 at = 0; begin + at < end; at += CHUNK) {
        const bool more = begin + at + CHUNK < end;
        if (more) load(at + CHUNK);
        part.add<true>(rows[stage], columns[stage]);
        stage ^= 1;
        if (more) store(stage);
        __syncthreads();
    }
    double* out = partials + (u64)blockIdx.z * side * side;
    part.each([&](int i, int j, double sum) {
        out[((u64)blockIdx.x * TILE + i) * side + blockIdx.y * TILE + j] = sum;
    });
}

// gram += sign * (the partials of all strips, in order), both triangles.
extern "C" __global__ void add_gram(const double* partials, double* gram, int side, int strips, double sign) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x, square = (u64)side * side;
    if (at >= square) return;
    const u64 i = at / side, j = at % side;
    if (j / TILE > i / TILE) return;
    double sum = 0.0;
    for (int z = 0; z < strips; z++) sum += partials[z * square + at];
    const double value = gram[at] + sign * sum;
    gram[at] = value;
    if (j / TILE < i / TILE) gram[j * side + i] = value;
}

// C = A B, or C - A B: A is f64, rows x depth in squares of 64 and chunks of 16, zero beyond; B is depth x
// columns, C rows x columns, in multiples of 64 columns. Block (x, y): columns of tile x, rows of tile y.
template <class T, bool SUBTRACT>
__device__ void product(const double* a, u64 a_pitch, const T* b, u64 b_pitch, const double* c, double* out,
                        u64 pitch, int rows, int depth) {
    __shared__ __align__(16) double left[2][TILE * PITCH], right[2][CHUNK * WIDE];
    const int thread = threadIdx.x;
    const u64 first_row = (u64)blockIdx.y * TILE, first_column = (u64)blockIdx.x * TILE;
    constexpr int EACH = 16 / sizeof(T), WIDTH = TILE / EACH, LOADS = CHUNK * WIDTH / THREADS;
    double2 p[4];
    T q[LOADS][EACH];
    auto load = [&](int at) {
        for (int h = 0; h < 4; h++)
            p[h] = *(const double2*)(a + (first_row + thread / 8 + 16 * h) * a_pitch + at + thread % 8 * 2);
        for (int h = 0; h < LOADS; h++) {
            const int unit = thread + h * THREADS;
            *(int4*)q[h] = *(const int4*)(b + (u64)(at + unit / WIDTH) * b_pitch + first_column + unit % WIDTH * EACH);
        }
    };
    auto store = [&](int stage) {
        for (int h = 0; h < 4; h++)
            *(double2*)(left[stage] + (thread / 8 + 16 * h) * PITCH + thread % 8 * 2) = p[h];
        for (int h = 0; h < LOADS; h++) {
            const int unit = thread + h * THREADS;
            for (int e = 0; e < EACH; e++) right[stage][unit / WIDTH * WIDE + unit % WIDTH * EACH + e] = q[h][e];
        }
    };
    Part part;
    int stage = 0;
    if (depth > 0) {
        load(0);
        store(0);
    }
    __syncthreads();
    for (int at = 0; at < depth; at += CHUNK) {
        const bool more = at + CHUNK < depth;
        if (more) load(at + CHUNK);
        part.add<false>(left[stage], right[stage]);
        stage ^= 1;
        if (more) store(stage);
        __syncthreads();
    }
    part.each([&](int i, int j, double sum) {
        if (first_row + i >= rows) return;
        const u64 at = (first_row + i) * pitch + first_column + j;
        out[at] = SUBTRACT ? c[at] - sum : sum;
    });
}

// panel -= weights B: what the rows found so far explain of the pivots' rows of K.
extern "C" __global__ void __launch_bounds__(THREADS)
subtract_known(const double* weights, u64 weights_pitch, const float* b, double* panel, u64 pitch, int rows,
               int depth) {
    product<float, true>(weights, weights_pitch, b, pitch, panel, panel, pitch, rows, depth);
}

// out = weights panel.
extern "C" __global__ void __launch_bounds__(THREADS)
combine_rows(const double* weights, u64 weights_pitch, const double* panel, double* out, u64 pitch, int rows,
             int depth) {
    product<double, false>(weights, weights_pitch, panel, pitch, nullptr, out, pitch, rows, depth);
}

// panel[r][j] *= roots[pivots[r]] roots[j]: the rows of a weighted K.
extern "C" __global__ void weigh_panel(double* panel, u64 pitch, const double* roots, const u64* pivots, u64 n_samples,
                                       int rows) {
    const u64 j = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n_samples) return;
    for (int r = 0; r < rows; r++) panel[r * pitch + j] *= roots[pivots[r]] * roots[j];
}

// The rows become rows `rank`.. of B, and the residual diagonal falls by their squares; not below zero, and to
// zero below its floor. One thread a sample.
extern "C" __global__ void append_rows(const double* rows, float* b, u64 pitch, double* diagonal, const double* floor,
                                       u64 n_samples, int rank, int count) {
    const u64 j = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n_samples) return;
    double left = diagonal[j];
    for (int r = 0; r < count; r++) {
        const double x = rows[r * pitch + j];
        left = fmax(left - x * x, 0.0);
        b[(u64)(rank + r) * pitch + j] = (float)x;
    }
    diagonal[j] = left < floor[j] ? 0.0 : left;
}

extern "C" __global__ void clear_pivots(double* diagonal, const u64* pivots, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) diagonal[pivots[i]] = 0.0;
}

// out[r * out_pitch + j] = b[r][samples[j]], zero from `count` on up to `padded`. Block y: a row.
template <class T>
__device__ void gather(const float* b, u64 pitch, const u64* samples, u64 count, u64 padded, T* out, u64 out_pitch) {
    const u64 j = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= padded) return;
    out[blockIdx.y * out_pitch + j] = j < count ? (T)b[blockIdx.y * pitch + samples[j]] : (T)0;
}

extern "C" __global__ void gather_f32(const float* b, u64 pitch, const u64* samples, u64 count, u64 padded, float* out,
                                      u64 out_pitch) {
    gather(b, pitch, samples, count, padded, out, out_pitch);
}

extern "C" __global__ void gather_f64(const float* b, u64 pitch, const u64* samples, u64 count, u64 padded, double* out,
                                      u64 out_pitch) {
    gather(b, pitch, samples, count, padded, out, out_pitch);
}

// matrix = gram + shift I; the identity beyond the rank.
extern "C" __global__ void shifted(const double* gram, double* matrix, int side, int rank, double shift) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (u64)side * side) return;
    const u64 i = at / side, j = at % side;
    matrix[at] = i >= rank || j >= rank ? (i == j ? 1.0 : 0.0) : gram[at] + (i == j ? shift : 0.0);
}

// Sweeping every block of 64 rows of a positive definite matrix A in turn leaves -A^-1 (Gauss and Jordan):
// with P = A_kk^-1, A_kk becomes -P, A_ik becomes A_ik P, A_ij becomes A_ij - A_ik P A_kj. Several matrices, those of
// the `owners`, are swept side by side: a pivot is one block's work, and leaves most of a GPU idle.

// -P of block k, by the same with single rows; `failed` where a pivot is not positive. Block x: a matrix.
extern "C" __global__ void __launch_bounds__(256)
sweep_pivot(const double* matrices, const int* owners, int side, int k, double* pivots, int* failed) {
    __shared__ double a[TILE][TILE + 1], column[TILE], row[TILE];
    const double* matrix = matrices + (u64)owners[blockIdx.x] * side * side;
    double* pivot = pivots + blockIdx.x * TILE * TILE;
    for (int i = threadIdx.x; i < TILE * TILE; i += 256)
        a[i / TILE][i % TILE] = matrix[((u64)k * TILE + i / TILE) * side + k * TILE + i % TILE];
    __syncthreads();
    for (int s = 0; s < TILE; s++) {
        const double p = a[s][s];
        if (!(p > 0.0)) {
            if (threadIdx.x == 0) failed[blockIdx.x] = 1;
            return;
        }
        if (threadIdx.x < TILE) {
            column[threadIdx.x] = a[threadIdx.x][s];
            row[threadIdx.x] = a[s][threadIdx.x] / p;
        }
        __syncthreads();
        for (int at = threadIdx.x; at < TILE * TILE; at += 256) {
            const int i = at / TILE, j = at % TILE;
            double value;
            if (i == s) value = j == s ? -1.0 / p : row[j];
            else if (j == s) value = column[i] / p;
            else value = fma(-column[i], row[j], a[i][j]);
            a[i][j] = value;
        }
        __syncthreads();
    }
    for (int i = threadIdx.x; i < TILE * TILE; i += 256) pivot[i] = a[i / TILE][i % TILE];
}

// Of block row i: old[i] = A_ik and swept[i] = A_ik P. Block (x, y): a block row, a matrix.
extern "C" __global__ void __launch_bounds__(THREADS)
sweep_panel(const double* matrices, const int* owners, int side, int k, const double* pivots, double* old,
            double* swept) {
    __shared__ __align__(16) double left[TILE * PITCH], right[CHUNK * WIDE];
    const double* matrix = matrices + (u64)owners[blockIdx.y] * side * side;
    const double* pivot = pivots + blockIdx.y * TILE * TILE;
    old += (u64)blockIdx.y * side * TILE;
    swept += (u64)blockIdx.y * side * TILE;
    const u64 first = (u64)blockIdx.x * TILE;
    Part part;
    for (int at = 0; at < TILE; at += CHUNK) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * CHUNK; i += THREADS) {
            const double x = matrix[(first + i / CHUNK) * side + k * TILE + at + i % CHUNK];
            left[i / CHUNK * PITCH + i % CHUNK] = x;
            old[(first + i / CHUNK) * TILE + at + i % CHUNK] = x;
            right[i / TILE * WIDE + i % TILE] = -pivot[(at + i / TILE) * TILE + i % TILE];
        }
        __syncthreads();
        part.add<false>(left, right);
    }
    part.each([&](int i, int j, double sum) { swept[(first + i) * TILE + j] = sum; });
}

extern "C" __global__ void __launch_bounds__(THREADS)
sweep_rest(double* matrices, const int* owners, int side, int k, const double* pivots, const double* old,
           const double* swept) {
    __shared__ __align__(16) double left[TILE * PITCH], right[TILE * PITCH];
    double* matrix = matrices + (u64)owners[blockIdx.z] * side * side;
    const double* pivot = pivots + blockIdx.z * TILE * TILE;
    old += (u64)blockIdx.z * side * TILE;
    swept += (u64)blockIdx.z * side * TILE;
    const u64 row = (u64)blockIdx.x * TILE, column = (u64)blockIdx.y * TILE;
    if (blockIdx.x == k || blockIdx.y == k) {
        const double* from = blockIdx.x != k ? swept + row * TILE : blockIdx.y != k ? swept + column * TILE : pivot;
        const bool turned = blockIdx.x == k && blockIdx.y != k;
        for (int i = threadIdx.x; i < TILE * TILE; i += THREADS) {
            const int r = i / TILE, c = i % TILE;
            matrix[(row + r) * side + column + c] = turned ? from[c * TILE + r] : from[r * TILE + c];
        }
        return;
    }
    Part part;
    for (int at = 0; at < TILE; at += CHUNK) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE * CHUNK; i += THREADS) {
            const int r = i / CHUNK, c = i % CHUNK;
            left[r * PITCH + c] = swept[(row + r) * TILE + at + c];
            right[r * PITCH + c] = old[(column + r) * TILE + at + c];
        }
        __syncthreads();
        part.add<true>(left, right);
    }
    part.each([&](int i, int j, double sum) { matrix[(row + i) * side + column + j] -= sum; });
}

// partials[strip][c][row] = sum over the strip's samples j of b_row,j v_cj, of VECTORS vectors that pass through
// together. Block (x, y): ROWS rows, a strip.
template <int VECTORS, int ROWS>
__device__ __forceinline__ void project(const float* b, u64 pitch, const double* v, u64 n_samples, int vectors,
                                        u64 strip, int side, double* partials) {
    __shared__ double shared[8][ROWS][VECTORS];
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const u64 begin = blockIdx.y * strip, end = min(begin + strip, n_samples);
    const float* from = b + (u64)blockIdx.x * ROWS * pitch;
    double sums[ROWS][VECTORS] = {};
    for (u64 j = begin + thread; j < end; j += 256) {
        float x[ROWS];
        double y[VECTORS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) x[r] = from[r * pitch + j];
#pragma unroll
        for (int c = 0; c < VECTORS; c++) y[c] = c < vectors ? v[c * n_samples + j] : 0.0;
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int c = 0; c < VECTORS; c++) sums[r][c] = fma((double)x[r], y[c], sums[r][c]);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < VECTORS; c++) {
            double sum = sums[r][c];
            for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
            if (lane == 0) shared[warp][r][c] = sum;
        }
    __syncthreads();
    if (thread < ROWS * VECTORS) {
        const int r = thread % ROWS, c = thread / ROWS;
        double sum = 0.0;
        for (int w = 0; w < 8; w++) sum += shared[w][r][c];
        partials[((u64)blockIdx.y * VECTORS + c) * side + blockIdx.x * ROWS + r] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256)
project_4(const float* b, u64 pitch, const double* v, u64 n_samples, int vectors, u64 strip, int side, double* partials) {
    project<4, 8>(b, pitch, v, n_samples, vectors, strip, side, partials);
}

extern "C" __global__ void __launch_bounds__(256)
project_8(const float* b, u64 pitch, const double* v, u64 n_samples, int vectors, u64 strip, int side, double* partials) {
    project<8, 4>(b, pitch, v, n_samples, vectors, strip, side, partials);
}

// out[i] = the partials of all strips, in order, of `count` numbers: rows of the vectors.
extern "C" __global__ void sum_projections(const double* partials, double* out, int count, int strips) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double sum = 0.0;
    for (int s = 0; s < strips; s++) sum += partials[(u64)s * count + i];
    out[i] = sum;
}

// out[c] = -(matrix of vector c) t[c], or out[c] plus that. A warp a row; block y: a vector.
extern "C" __global__ void __launch_bounds__(256)
multiply_small(const double* matrices, const int* owners, const double* t, double* out, int side, int add) {
    const int lane = threadIdx.x & 31, row = blockIdx.x * 8 + (threadIdx.x >> 5), c = blockIdx.y;
    const double* from = matrices + (u64)owners[c] * side * side + (u64)row * side;
    double sum = 0.0;
    for (int j = lane; j < side; j += 32) sum = fma(from[j], t[(u64)c * side + j], sum);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    const u64 at = (u64)c * side + row;
    if (lane == 0) out[at] = add ? out[at] - sum : -sum;
}

// rest = t - (gram + shift I) y: what a solution y of one vector leaves. A warp a row.
extern "C" __global__ void __launch_bounds__(256)
rest_small(const double* gram, double shift, const double* t, const double* y, double* rest, int side) {
    const int lane = threadIdx.x & 31, row = blockIdx.x * 8 + (threadIdx.x >> 5);
    const double* from = gram + (u64)row * side;
    double sum = 0.0;
    for (int j = lane; j < side; j += 32) sum = fma(from[j], y[j], sum);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) rest[row] = t[row] - sum - shift * y[row];
}

// out[c][j] = (v[c][j] - sum over rows of b_row,j y[c][row]) / ridge where sample j is free, else zero.
template <int VECTORS>
__device__ __forceinline__ void expand(const float* b, u64 pitch, const double* v, const double* y, const u8* free,
                                       const int* systems, double ridge, double* out, u64 n_samples, int vectors,
                                       int side) {
    constexpr int ROWS = 256;
    __shared__ double weights[ROWS][VECTORS];
    const u64 j = (u64)blockIdx.x * 256 + threadIdx.x;
    double sums[VECTORS] = {};
    for (int first = 0; first < side; first += ROWS) {
        const int rows = min(ROWS, side - first);
        __syncthreads();
        for (int i = threadIdx.x; i < rows * VECTORS; i += 256) {
            const int r = i % rows, c = i / rows;
            weights[r][c] = c < vectors ? y[(u64)c * side + first + r] : 0.0;
        }
        __syncthreads();
        if (j < n_samples)
#pragma unroll 8
            for (int r = 0; r < rows; r++) {
                const double x = b[(u64)(first + r) * pitch + j];
#pragma unroll
                for (int c = 0; c < VECTORS; c++) sums[c] = fma(x, weights[r][c], sums[c]);
            }
    }
    if (j >= n_samples) return;
#pragma unroll
    for (int c = 0; c < VECTORS; c++)
        if (c < vectors)
            out[c * n_samples + j] = free[systems[c] * n_samples + j] ? (v[c * n_samples + j] - sums[c]) / ridge : 0.0;
}

extern "C" __global__ void __launch_bounds__(256)
expand_4(const float* b, u64 pitch, const double* v, const double* y, const u8* free, const int* systems, double ridge,
         double* out, u64 n_samples, int vectors, int side) {
    expand<4>(b, pitch, v, y, free, systems, ridge, out, n_samples, vectors, side);
}

extern "C" __global__ void __launch_bounds__(256)
expand_8(const float* b, u64 pitch, const double* v, const double* y, const u8* free, const int* systems, double ridge,
         double* out, u64 n_samples, int vectors, int side) {
    expand<8>(b, pitch, v, y, free, systems, ridge, out, n_samples, vectors, side);
}

// out[j * out_pitch + r] = b[r][samples[j]]: the same turned. Block y: a sample.
extern "C" __global__ void gather_turned(const float* b, u64 pitch, const u64* samples, int rank, double* out,
                                         u64 out_pitch) {
    const int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rank) out[blockIdx.y * out_pitch + r] = b[r * pitch + samples[blockIdx.y]];
}
