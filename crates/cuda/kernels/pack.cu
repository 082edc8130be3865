// What fused.cu multiplies, made from f64: features in halves or f32, V in scaled halves.

typedef unsigned short u16;
typedef unsigned long long u64;

constexpr int TILE = 128;
constexpr int CHUNK = 16;

__device__ __forceinline__ u16 half_bits(double x) {
    u16 y;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(y) : "d"(x));
    return y;
}

__device__ __forceinline__ double from_half(u16 x) {
    double y;
    asm("cvt.f64.f16 %0, %1;" : "=d"(y) : "h"(x));
    return y;
}

// Features as f16 hi and lo, [part][chunk][row][16], and half the squared norms of hi and of hi +
// lo, both lowered by `shift` (the kernel's scale by a power of two). One thread a row.
extern "C" __global__ void pack_halves(const double* features, const double* means, double scale,
                                       double shift, u16* out, float* norms_high, float* norms_full,
                                       u64 n_samples, u64 padded, int n_features, int chunks) {
    const u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= padded) return;
    const u64 part = (u64)chunks * padded * CHUNK;
    double high_norm = 0.0, full_norm = 0.0;
    for (int k = 0; k < chunks * CHUNK; k++) {
        double z = row < n_samples && k < n_features
            ? (features[row * n_features + k] - means[k]) * scale : 0.0;
        u16 high = half_bits(z);
        u16 low = half_bits(z - from_half(high));
        double h = from_half(high), full = h + from_half(low);
        high_norm += h * h;
        full_norm += full * full;
        // The halves of a row's 32 bytes change places in every other group of four rows.
        int unit = ((k >> 3) & 1) ^ ((row >> 2) & 1);
        u64 at = ((u64)(k / CHUNK) * padded + row) * CHUNK + unit * 8 + (k & 7);
        out[at] = high;
        out[part + at] = low;
    }
    norms_high[row] = (float)(0.5 * high_norm - shift);
    norms_full[row] = (float)(0.5 * full_norm - shift);
}

// Features as f32, [chunk][feature][row]. One thread a row.
extern "C" __global__ void pack_floats(const double* features, const double* means, double scale,
                                       float* out, u64 n_samples, u64 padded, int n_features, int chunks) {
    const u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= padded) return;
    for (int k = 0; k < chunks * CHUNK; k++)
        out[(u64)k * padded + row] = row < n_samples && k < n_features
            ? (float)((features[row * n_features + k] - means[k]) * scale) : 0.0f;
}

// The largest |v| of each column, as the bits of an f64: those of numbers >= 0 are ordered as they
// are, so this maximum needs no order to be the same in every run. `largest` starts at zero.
extern "C" __global__ void largest_entries(const double* v, u64* largest, u64 n_samples, int n_columns) {
    const int column = blockIdx.y;
    const u64 stride = (u64)gridDim.x * blockDim.x;
    double found = 0.0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n_samples; i += stride)
        found = fmax(found, fabs(v[i * n_columns + column]));
    for (int step = 16; step > 0; step /= 2) found = fmax(found, __shfl_xor_sync(0xffffffffu, found, step));
    if (threadIdx.x % 32 == 0) atomicMax(&largest[column], (u64)__double_as_longlong(found));
}

// The power of two that takes the largest entry of a column to [2^9, 2^10).
__device__ __forceinline__ int exponent_for(u64 largest) {
    return largest == 0 ? 0 : 9 - ilogb(__longlong_as_double((long long)largest));
}

// Columns first..first+width of V as [tile][group][4 hi, 4 lo][row] in f16. One thread a row.
extern "C" __global__ void pack_v(const double* v, const u64* largest, u16* out, u64 n_samples, u64 padded,
                                  int n_columns, int first, int width, int groups) {
    const u64 row = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= padded) return;
    const u64 tile = row / TILE, local = row % TILE;
    for (int c = 0; c < 4 * groups; c++) {
        double x = row < n_samples && c < width
            ? ldexp(v[row * n_columns + first + c], exponent_for(largest[first + c])) : 0.0;
        u16 high = half_bits(x);
        u64 at = ((tile * groups + c / 4) * 8 + c % 4) * TILE + local;
        out[at] = high;
        out[at + 4 * TILE] = half_bits(x - from_half(high));
    }
}

// out += weight * 2^-(10 + exponent) * (sum of column partials over a, then of row partials over
// b), in f64 and in this order. One thread a row and column.
extern "C" __global__ void reduce_partials(const float* row_partials, const float* column_partials,
                                           const u64* largest, double* out, double weight, u64 n_samples,
                                           int n_columns, int first_column, int width, int group_rows,
                                           int n_groups, int first, int count) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const u64 row = (u64)first * group_rows + i / width;
    const int c = i % width;
    if (row >= n_samples) return;
    const int group = row / group_rows;
    const u64 local = row % group_rows;
    double sum = 0.0;
    const int last = min(first + count, group + 1);
    for (int a = first; a < last; a++)
        sum += column_partials[(((u64)(a - first) * n_groups + group) * group_rows + local) * width + c];
    if (group < first + count)
        for (int b = group; b < n_groups; b++)
            sum += row_partials[(((u64)(group - first) * n_groups + b) * group_rows + local) * width + c];
    out[row * n_columns + first_column + c]
        += ldexp(weight * sum, -10 - exponent_for(largest[first_column + c]));
}

// out[i][c] = in[c][i]: vectors as rows become columns. One thread a sample.
extern "C" __global__ void rows_to_columns(const double* in, double* out, u64 n_samples, int n_columns) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_samples) return;
    for (int c = 0; c < n_columns; c++) out[i * n_columns + c] = in[c * n_samples + i];
}

// And back.
extern "C" __global__ void columns_to_rows(const double* in, double* out, u64 n_samples, int n_columns) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_samples) return;
    for (int c = 0; c < n_columns; c++) out[c * n_samples + i] = in[i * n_columns + c];
}

// out[i] = features[rows[i]], row by row. One thread a number.
extern "C" __global__ void gather_rows(const double* features, const u64* rows, double* out, u64 n_rows,
                                       int n_features) {
    const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n_rows * n_features) out[at] = features[rows[at / n_features] * n_features + at % n_features];
}
