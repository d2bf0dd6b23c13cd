// SPDX-License-Identifier: Apache-2.0
// Sizes and constants of the fourth set, for its table of rows and its native functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::bench {

constexpr std::size_t kTokens = 1024, kHidden = 4096;  ///< RMS norm of halves with a residual
constexpr float kRmsEpsilon = 1e-5f;

constexpr std::size_t kQuantRows = 8192, kQuantWidth = 4096,
                      kQuantGroup = 32;  ///< weights that share a scale
constexpr std::size_t kQuantGroups = kQuantWidth / kQuantGroup;

constexpr std::size_t kRouted = std::size_t{1} << 16, kExperts = 64, kChosen = 4;

constexpr std::size_t kGraphNodes = std::size_t{1} << 20, kFrontier = std::size_t{1} << 16;
constexpr int kLevel = 4;  ///< of the vertices that the step finds

constexpr std::size_t kWindows = std::size_t{1} << 22, kWindow = 10, kMer = 15;
constexpr std::size_t kStrand = kWindows + 64;  ///< letters; the windows need 23 more than there are windows

constexpr std::size_t kBarcode = 64, kReads = std::size_t{1} << 15, kRead = 128;

constexpr std::size_t kPairsHashed = std::size_t{1} << 15;
constexpr std::uint64_t kRoundConstants[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

constexpr std::size_t kSpaceX = 128, kSpaceY = 128, kSpaceZ = 192;
constexpr float kCentreWeight = 0.4f, kSideWeight = 0.1f;

constexpr std::size_t kFluidSide = 16, kFluidCells = kFluidSide * kFluidSide * kFluidSide;
constexpr float kReach = 1.0f, kMass = 0.02f;  ///< the side of a cell is the reach of the kernel function

constexpr std::size_t kNoisySide = 512, kRadius = 2, kTaps = 2 * kRadius + 1;
constexpr float kRangeScale = 12.5f;

constexpr std::size_t kDctWidth = 2048, kDctHeight = 1024;

constexpr std::size_t kPlacesFound = 4096, kStations = 128;
constexpr double kEarthRadius = 6371.0;

}  // namespace quern::bench
