// SPDX-License-Identifier: Apache-2.0
// Prices of European call and put options by the formula of F. Black and M. Scholes ("The Pricing of Options and Corporate
// Liabilities", Journal of Political Economy 81, 1973), one option a thread.

// The normal distribution by a polynomial (M. Abramowitz, I. Stegun, "Handbook of Mathematical Functions", 26.2.17; its error is
// below 7.5e-8).
__device__ float normal_cdf(float x) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabsf(x));
  const float polynomial = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228040143267794f * expf(-0.5f * x * x) * polynomial;
  return x > 0.0f ? 1.0f - tail : tail;
}

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
