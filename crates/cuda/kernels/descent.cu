// Steps of conjugate gradients for (K_FF + lambda I) c = b, in f64, a vector for each dimension that still takes part.
// Vectors lie one after the other, `n_samples` numbers each; products take and leave them side by side, `vectors`
// numbers a sample. Sums are those of threads, blocks and all blocks, each in an order that never changes.

typedef unsigned char u8;
typedef unsigned long long u64;

constexpr int THREADS = 256;
constexpr int EACH = 4; // samples of a thread; block (x, y) has THREADS * EACH samples of vector y
constexpr double LARGEST = 1.7976931348623157e308;

// The sum over the threads of a block, for all of them.
__device__ double block_sum(double sum) {
    __shared__ double warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    __syncthreads(); // the last sum has been read
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x >> 5] = sum;
    __syncthreads();
    double all = 0.0;
    for (int w = 0; w < THREADS / 32; w++) all += warps[w];
    return all;
}

// The sum of what `blocks` blocks left.
__device__ double total(const double* partials, int blocks) {
    double sum = 0.0;
    for (int b = threadIdx.x; b < blocks; b += THREADS) sum += partials[b];
    return block_sum(sum);
}

// Calls `use` for each sample of this thread.
template <class Use>
__device__ __forceinline__ void each_sample(u64 n_samples, Use use) {
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const u64 i = ((u64)blockIdx.x * EACH + e) * THREADS + threadIdx.x;
        if (i < n_samples) use(i);
    }
}

// Partial sums of <r, z>.
extern "C" __global__ void __launch_bounds__(THREADS)
inner_products(const double* residual, const double* z, double* partials, u64 n_samples, int blocks) {
    const u64 first = blockIdx.y * n_samples;
    double sum = 0.0;
    each_sample(n_samples, [&](u64 i) { sum = fma(residual[first + i], z[first + i], sum); });
    sum = block_sum(sum);
    if (threadIdx.x == 0) partials[(u64)blockIdx.y * blocks + blockIdx.x] = sum;
}

// rho = <r, z>, and beta = rho / (the rho before), zero in the first step. Block x: a vector.
extern "C" __global__ void __launch_bounds__(THREADS)
turn_factors(const double* partials, int blocks, double* rho, double* beta, int is_first) {
    const int c = blockIdx.x;
    const double next = total(partials + (u64)c * blocks, blocks);
    if (threadIdx.x != 0) return;
    beta[c] = is_first ? 0.0 : next / rho[c];
    rho[c] = next;
}

// p = z + beta p, and the same side by side, times the roots of the weights.
extern "C" __global__ void __launch_bounds__(THREADS)
turn(const double* z, const double* beta, const double* roots, int weighted, double* p, double* columns, u64 n_samples,
     int vectors) {
    const int c = blockIdx.y;
    const u64 first = c * n_samples;
    const double factor = beta[c];
    each_sample(n_samples, [&](u64 i) {
        const double x = fma(factor, p[first + i], z[first + i]);
        p[first + i] = x;
        columns[i * vectors + c] = weighted ? roots[i] * x : x;
    });
}

// full = K p from what a product left side by side, and partial sums of p'(K_FF + lambda I)p and p'p.
extern "C" __global__ void __launch_bounds__(THREADS)
curve(const double* columns, const double* roots, int weighted, const double* p, const u8* free, const int* dimensions,
      double ridge, double* full, double* partials, u64 n_samples, int vectors, int blocks) {
    const int c = blockIdx.y;
    const u64 first = c * n_samples;
    const u8* is_free = free + dimensions[c] * n_samples;
    double along = 0.0, square = 0.0;
    each_sample(n_samples, [&](u64 i) {
        const double image = weighted ? roots[i] * columns[i * vectors + c] : columns[i * vectors + c];
        const double x = p[first + i];
        full[first + i] = image;
        along = fma(x, fma(ridge, x, is_free[i] ? image : 0.0), along);
        square = fma(x, x, square);
    });
    along = block_sum(along);
    square = block_sum(square);
    if (threadIdx.x != 0) return;
    partials[(u64)(2 * c) * blocks + blockIdx.x] = along;
    partials[(u64)(2 * c + 1) * blocks + blockIdx.x] = square;
}

// The length of a step, zero where the matrix does not curve upwards; report[c] = (p'(K_FF + lambda I)p, p'p, -).
// Block x: a vector.
extern "C" __global__ void __launch_bounds__(THREADS)
step_lengths(const double* partials, int blocks, const double* rho, double* lengths, double* report) {
    const int c = blockIdx.x;
    const double along = total(partials + (u64)(2 * c) * blocks, blocks);
    const double square = total(partials + (u64)(2 * c + 1) * blocks, blocks);
    if (threadIdx.x != 0) return;
    lengths[c] = along > 0.0 && along <= LARGEST ? rho[c] / along : 0.0;
    report[3 * c] = along;
    report[3 * c + 1] = square;
}

// A step along p: c, its image and the residual, and partial sums of the residual's square. No step, where its length
// is zero: the image may be no number there.
extern "C" __global__ void __launch_bounds__(THREADS)
take_step(const double* full, const double* p, const u8* free, const int* dimensions, const double* lengths, double ridge,
        double* residual, double* found, double* image, double* partials, u64 n_samples, int blocks) {
    const int c = blockIdx.y;
    const u64 first = c * n_samples, own = dimensions[c] * n_samples;
    const double length = lengths[c];
    double sum = 0.0;
    each_sample(n_samples, [&](u64 i) {
        double left = residual[first + i];
        if (length != 0.0) {
            const double x = p[first + i], along = full[first + i];
            image[own + i] = fma(length, along, image[own + i]);
            found[own + i] = fma(length, x, found[own + i]);
            left = fma(-length, fma(ridge, x, free[own + i] ? along : 0.0), left);
            residual[first + i] = left;
        }
        sum = fma(left, left, sum);
    });
    sum = block_sum(sum);
    if (threadIdx.x == 0) partials[(u64)c * blocks + blockIdx.x] = sum;
}

// report[c] = (-, -, r'r). Block x: a vector.
extern "C" __global__ void __launch_bounds__(THREADS)
squared_residuals(const double* partials, int blocks, double* report) {
    const double sum = total(partials + (u64)blockIdx.x * blocks, blocks);
    if (threadIdx.x == 0) report[3 * blockIdx.x + 2] = sum;
}

// out[i][r] = row[i] / roots[i]: row r of what a matrix has beside K, as features of the samples.
extern "C" __global__ void beside(const double* row, const double* roots, int weighted, double* out, u64 n_samples,
                                  int r, int n_rows) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n_samples) out[i * n_rows + r] = weighted ? row[i] / roots[i] : row[i];
}
