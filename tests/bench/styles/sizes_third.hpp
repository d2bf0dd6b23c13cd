// SPDX-License-Identifier: Apache-2.0
// Sizes and constants of the third set, for its table of rows and its native functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::bench {

constexpr std::size_t kLatticeWidth = 1024, kLatticeHeight = 1024;  ///< cells of the fluid
constexpr std::size_t kCells = kLatticeWidth * kLatticeHeight;
constexpr float kOmega = 1.2f;
/// The nine directions of D2Q9, their weights, and the number of the direction that goes back.
constexpr int kDirectionX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
constexpr int kDirectionY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
constexpr int kBack[9] = {0, 3, 4, 1, 2, 7, 8, 5, 6};
constexpr float kDirectionWeight[9] = {4.0f / 9,  1.0f / 9,  1.0f / 9,  1.0f / 9, 1.0f / 9,
                                       1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36};

constexpr std::size_t kViewWidth = 640, kViewHeight = 480;  ///< pixels of the marching rays
constexpr int kMarchSteps = 96;
constexpr float kFar = 20.0f, kNear = 1e-3f;

constexpr std::size_t kWorld = 6144;  ///< Game of Life

constexpr std::size_t kPhotoWidth = 3840, kPhotoHeight = 2160;  ///< an image of four bytes a pixel
constexpr std::size_t kSmallWidth = 2560, kSmallHeight = 1440;
constexpr float kPhotoStep = 1.5f;  ///< all weights are multiples of 1/4: every order of sums is exact

constexpr std::size_t kSystems = 8192, kUnknowns = 128;
constexpr std::size_t kFactors = 16384, kFactorSide = 16;

constexpr std::size_t kInt8Side = 1024;

constexpr std::size_t kRunBlock = 2048, kRunElements = std::size_t{1} << 23;
constexpr std::size_t kTopWidth = 2048, kTopRows = 8192;
constexpr std::size_t kCountedKeys = std::size_t{1} << 20, kPlaces = std::size_t{1} << 20;

constexpr std::size_t kVertices = std::size_t{1} << 19, kBones = 64;

constexpr std::size_t kSamples = std::size_t{1} << 20, kClusters = 32, kFeatures = 4;

/// The hash of the table of counted keys.
constexpr std::uint32_t scrambled(std::uint32_t key) {
  key = (key ^ key >> 16) * 0x85ebca6bu;
  key = (key ^ key >> 13) * 0xc2b2ae35u;
  return key ^ key >> 16;
}

}  // namespace quern::bench
