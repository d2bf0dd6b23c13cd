// SPDX-License-Identifier: Apache-2.0
// Sizes and constants that the table of rows and the native functions share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::bench {

constexpr std::size_t kVector = std::size_t{1} << 24;
constexpr float kSlope = 1.5f;

constexpr std::size_t kReduceBlock = 512;  ///< elements of one sum of the block reductions

constexpr std::size_t kSide = 4096;     ///< transpose, five-point stencil
constexpr std::size_t kMatrix = 768;    ///< matrix product
constexpr std::size_t kImage = 2048;    ///< 7 x 7 convolution
constexpr std::size_t kPicture = 1024;  ///< mandelbrot
constexpr int kEscapeLimit = 256;

constexpr std::size_t kBodies = 8192;
constexpr float kSoftening = 0.01f;

constexpr std::size_t kOptions = std::size_t{1} << 21;
constexpr float kRate = 0.02f, kVolatility = 0.3f;

constexpr std::size_t kHistogram = std::size_t{1} << 23;

constexpr std::size_t kKept = std::size_t{1} << 24;  ///< stream compaction
constexpr int kThreshold = 1 << 30;

constexpr std::size_t kSoftmaxRow = 1000, kSoftmaxRows = 8192;
constexpr std::size_t kNormRow = 1024, kNormRows = 8192;
constexpr float kNormEpsilon = 1e-5f;

constexpr std::size_t kScalarRows = std::size_t{1} << 18, kVectorRows = std::size_t{1} << 15;
constexpr std::size_t kColumns = std::size_t{1} << 16;

constexpr std::size_t kAtoms = std::size_t{1} << 15, kNeighbours = 64;
constexpr double kCutoffSquared = 6.25;

constexpr std::size_t kHalves = std::size_t{1} << 24;
constexpr std::size_t kHalfSide = 4096;

constexpr std::size_t kScanBlock = 256, kScan = std::size_t{1} << 23;
constexpr std::size_t kCubBlock = 1024;  ///< 256 threads, four elements each

constexpr std::size_t kPairs = 1024, kQuery = 128, kTarget = 256;
constexpr int kMatch = 2, kMismatch = -1, kGap = -1;

constexpr std::size_t kMessages = std::size_t{1} << 18;
constexpr std::size_t kSortBlock = 512, kSort = std::size_t{1} << 21;

constexpr std::size_t kKeys = std::size_t{1} << 22, kRadixBlock = 256, kDigits = 16;
constexpr unsigned kRadixShift = 8;

constexpr std::size_t kDraws = std::size_t{1} << 20;  ///< threads; four normal numbers each
constexpr std::uint32_t kSeed0 = 0x2545f491, kSeed1 = 0x9e3779b9;

constexpr std::size_t kPoints = 64, kTransforms = std::size_t{1} << 16;

constexpr std::size_t kText = std::size_t{1} << 25, kPattern = 8;
constexpr std::size_t kNodes = std::size_t{1} << 16, kLookups = std::size_t{1} << 20;

constexpr std::size_t kPowers = std::size_t{1} << 17;
constexpr int kPowerSteps = 64;
constexpr std::uint64_t kModulus = 0xffffffff00000001u;         ///< 2^64 - 2^32 + 1, a prime
constexpr std::uint64_t kModulusInverse = 0xfffffffeffffffffu;  ///< -1 / kModulus modulo 2^64
constexpr std::size_t kHashes = std::size_t{1} << 22;

constexpr std::size_t kAtomics = std::size_t{1} << 24, kCas = std::size_t{1} << 20;

constexpr std::size_t kWalkers = std::size_t{1} << 15;
constexpr int kTrials = 256;

/// A filter that is no product of a row and a column.
constexpr float kFilter[49] = {
    1,  2, 3, 4, 3, 2,  1,  2, 5, 7, 8, 6, 4, 2, 3, 7, 9, 12, 10, 6, 3, 4, 9, 13, 16,
    13, 8, 4, 3, 6, 11, 12, 9, 7, 3, 2, 4, 6, 8, 7, 5, 2, 1,  2,  3, 4, 3, 2, 1,
};

}  // namespace quern::bench
