// SPDX-License-Identifier: Apache-2.0
// Prices of European call and put options by the formula of F. Black and M. Scholes ("The Pricing of Options and Corporate
// Liabilities", Journal of Political Economy 81, 1973), one option a thread.

__device__ float normal_cdf(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }

extern "C" __global__ void black_scholes(const float* spot, const float* strike, const float* years, float rate, float volatility,
                                         float* call, float* put, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float root = volatility * sqrtf(years[i]);
  const float d1 = (logf(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
  const float d2 = d1 - root;
  const float discounted = strike[i] * expf(-rate * years[i]);
  const float price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d2);
  call[i] = price;
  put[i] = price - spot[i] + discounted;  // put-call parity
}
