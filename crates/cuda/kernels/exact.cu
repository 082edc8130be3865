// Kernel values in f64, by differences as the definition has them: products for certificates, whole
// rows for pivoted Cholesky, and the linear part of a kernel. Compiled once for each DISTANCES (see
// build.py).

// What the terms of the kernel are functions of: 1 |a - b|^2, 2 |a - b|_1, 3 both, 0 neither.
#ifndef DISTANCES
#define DISTANCES 1
#endif

typedef unsigned long long u64;

constexpr int TILE = 64;
constexpr int CHUNK = 16;
constexpr int SIDE = 16; // 16 x 16 threads, 4 x 4 values each
constexpr int WIDTH = 8; // columns of V in a pass
constexpr int MAX_TERMS = 8;

// w * k(a, b) each; `rate` is gamma, or its multiple under the root for Matern.
struct Terms {
    double weight[MAX_TERMS];
    double rate[MAX_TERMS];
    int kind[MAX_TERMS]; // as in fused.cu: 0 rbf, 1 laplace, 2 matern32, 3 matern52
    int count;
    double linear;
    double constant;
};

// Not inlined: sixteen copies of the exponentials would make up most of the code.
__device__ __noinline__ double kernel_value(const Terms& terms, double squared, double absolute, double inner) {
    double sum = terms.linear * inner + terms.constant;
    for (int i = 0; i < terms.count; i++) {
        double value;
        if (terms.kind[i] == 0) value = exp(-terms.rate[i] * squared);
        else if (terms.kind[i] == 1) value = exp(-terms.rate[i] * absolute);
        else {
            double t = sqrt(terms.rate[i] * squared);
            value = (terms.kind[i] == 2 ? 1.0 + t : 1.0 + t + t * t / 3.0) * exp(-t);
        }
        sum += terms.weight[i] * value;
    }
    return sum;
}

// 64 x 64 kernel values, a thread those of rows ty + 16r and columns tx + 16c. `row_of(i)` is the
// sample of row i of the tile, `column_of(i)` of column i; values beyond the last sample are not
// used, so any sample will do there.
template <class RowOf, class ColumnOf>
__device__ void tile_values(double (&values)[4][4], const double* row_features, const double* column_features,
                            int n_features, const Terms& terms, RowOf row_of, ColumnOf column_of) {
    __shared__ double rows[CHUNK][TILE + 1], columns[CHUNK][TILE + 1];
    const int thread = threadIdx.x, ty = thread / SIDE, tx = thread % SIDE;
    double squared[4][4] = {}, absolute[4][4] = {}, inner[4][4] = {};
    const bool has_inner = terms.linear != 0.0;
    for (int k0 = 0; k0 < n_features; k0 += CHUNK) {
        __syncthreads();
        for (int i = thread; i < TILE * CHUNK; i += SIDE * SIDE) {
            int k = i % CHUNK, r = i / CHUNK;
            bool inside = k0 + k < n_features;
            rows[k][r] = inside ? row_features[row_of(r) * n_features + k0 + k] : 0.0;
            columns[k][r] = inside ? column_features[column_of(r) * n_features + k0 + k] : 0.0;
        }
        __syncthreads();
#pragma unroll 4
        for (int k = 0; k < CHUNK; k++) {
            double p[4], q[4];
#pragma unroll
            for (int i = 0; i < 4; i++) p[i] = rows[k][ty + SIDE * i], q[i] = columns[k][tx + SIDE * i];
#pragma unroll
            for (int r = 0; r < 4; r++)
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    double difference = p[r] - q[c];
                    if (DISTANCES & 1) squared[r][c] = fma(difference, difference, squared[r][c]);
                    if (DISTANCES & 2) absolute[r][c] += fabs(difference);
                }
            if (has_inner)
#pragma unroll
                for (int r = 0; r < 4; r++)
#pragma unroll
                    for (int c = 0; c < 4; c++) inner[r][c] = fma(p[r], q[c], inner[r][c]);
        }
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++)
            values[r][c] = kernel_value(terms, squared[r][c], absolute[r][c], inner[r][c]);
}

// partials[strip][row][c] = sum over the strip's samples j of k(y_row, z_j) v_jc, for columns
// first..first+width of V; y are other samples, or the same. Block (x, y): rows of tile x, samples
// of strip y.
extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
exact_product(const double* row_features, u64 n_rows, const double* features, u64 n_samples, const double* v,
              double* partials, int n_features, int n_columns, int first, int width, u64 strip_columns,
              Terms terms) {
    __shared__ double v_tile[TILE][WIDTH + 1];
    const int thread = threadIdx.x, ty = thread / SIDE, tx = thread % SIDE;
    const u64 first_row = (u64)blockIdx.x * TILE;
    const u64 begin = blockIdx.y * strip_columns, end = min(begin + strip_columns, n_samples);
    auto row_of = [&](int r) { return min(first_row + r, n_rows - 1); };
    double sums[4][WIDTH] = {};
    for (u64 column = begin; column < end; column += TILE) {
        double values[4][4];
        auto column_of = [&](int c) { return min(column + c, n_samples - 1); };
        tile_values(values, row_features, features, n_features, terms, row_of, column_of);
        for (int i = thread; i < TILE * WIDTH; i += SIDE * SIDE) {
            int j = i / WIDTH, c = i % WIDTH;
            v_tile[j][c] = column + j < end && c < width ? v[(column + j) * n_columns + first + c] : 0.0;
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int c = 0; c < WIDTH; c++) {
                double x = v_tile[tx + SIDE * j][c];
#pragma unroll
                for (int r = 0; r < 4; r++) sums[r][c] = fma(values[r][j], x, sums[r][c]);
            }
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < WIDTH; c++) {
            double sum = sums[r][c];
            for (int step = 1; step < SIDE; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
            u64 row = first_row + ty + SIDE * r;
            if (tx == 0 && row < n_rows && c < width)
                partials[((u64)blockIdx.y * n_rows + row) * width + c] = sum;
        }
}

// out[row][first + c] = the partials of all strips, in order.
extern "C" __global__ void sum_strips(const double* partials, double* out, u64 n_rows, int n_columns,
                                      int first, int width, int strips) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_rows * width) return;
    double sum = 0.0;
    for (int s = 0; s < strips; s++) sum += partials[(u64)s * n_rows * width + i];
    out[i / width * n_columns + first + i % width] = sum;
}

// `columns`: the samples of the columns, or null for all in order.
template <class T>
__device__ void panel_values(const double* features, const u64* rows, const u64* columns, T* out, u64 out_pitch,
                             u64 n_columns, int n_features, int n_rows, Terms terms) {
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    const int first_row = blockIdx.y * TILE;
    const u64 first_column = (u64)blockIdx.x * TILE;
    double values[4][4];
    auto row_of = [&](int r) { return rows[min(first_row + r, n_rows - 1)]; };
    auto column_of = [&](int c) {
        u64 column = min(first_column + c, n_columns - 1);
        return columns ? columns[column] : column;
    };
    tile_values(values, features, features, n_features, terms, row_of, column_of);
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++) {
            int row = first_row + ty + SIDE * r;
            u64 column = first_column + tx + SIDE * c;
            if (row < n_rows && column < n_columns) out[(u64)row * out_pitch + column] = (T)values[r][c];
        }
}

// out[r * out_pitch + j] = k(z_rows[r], z_columns[j]), computed in f64.
extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
rows_f32(const double* features, const u64* rows, const u64* columns, float* out, u64 out_pitch, u64 n_columns,
         int n_features, int n_rows, Terms terms) {
    panel_values(features, rows, columns, out, out_pitch, n_columns, n_features, n_rows, terms);
}

extern "C" __global__ void __launch_bounds__(SIDE * SIDE)
rows_f64(const double* features, const u64* rows, const u64* columns, double* out, u64 out_pitch, u64 n_columns,
         int n_features, int n_rows, Terms terms) {
    panel_values(features, rows, columns, out, out_pitch, n_columns, n_features, n_rows, terms);
}
