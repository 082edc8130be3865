// The linear part of a kernel, w aᵀb + c, by its factors: out += w Z (ZᵀV) + c 1 (1ᵀV), in f64.

typedef unsigned long long u64;

constexpr int WIDTH = 8;

// partials[strip][k][c] = sum over the strip's rows of z_ik v_ic; k = n_features is a column of
// ones. One thread a feature, one block a strip.
extern "C" __global__ void inner_partials(const double* features, const double* v, double* partials,
                                          u64 n_samples, int n_features, int n_columns, int first, int width,
                                          u64 strip_rows) {
    const u64 begin = blockIdx.x * strip_rows, end = min(begin + strip_rows, n_samples);
    for (int k = threadIdx.x; k <= n_features; k += blockDim.x) {
        double sums[WIDTH] = {};
        for (u64 i = begin; i < end; i++) {
            double z = k < n_features ? features[i * n_features + k] : 1.0;
#pragma unroll
            for (int c = 0; c < WIDTH; c++)
                if (c < width) sums[c] = fma(z, v[i * n_columns + first + c], sums[c]);
        }
        for (int c = 0; c < width; c++)
            partials[((u64)blockIdx.x * (n_features + 1) + k) * width + c] = sums[c];
    }
}

// inner[k][c] = the partials of all strips, in order, times the weight of the linear part (of the
// constant for the column of ones).
extern "C" __global__ void sum_inner(const double* partials, double* inner, int n_features, int width,
                                     int strips, double linear, double constant) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, count = (n_features + 1) * width;
    if (i >= count) return;
    double sum = 0.0;
    for (int s = 0; s < strips; s++) sum += partials[(u64)s * count + i];
    inner[i] = sum * (i / width < n_features ? linear : constant);
}

// out[i][first + c] += sum over k of z_ik inner[k][c]. One thread a row and column.
extern "C" __global__ void add_outer(const double* features, const double* inner, double* out,
                                     u64 n_samples, int n_features, int n_columns, int first, int width) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n_samples * width) return;
    const u64 row = i / width;
    const int c = i % width;
    double sum = inner[n_features * width + c];
    for (int k = 0; k < n_features; k++) sum = fma(features[row * n_features + k], inner[k * width + c], sum);
    out[row * n_columns + first + c] += sum;
}
