# SPDX-License-Identifier: Apache-2.0
"""Each of stumpy's GPU functions computes what its function for processors does."""
import numpy as np
import pytest
import stumpy

WINDOW = 16


def series(seed, length=400):
    return np.random.default_rng(seed).standard_normal(length).cumsum()


def with_gaps(values):
    values = values.copy()
    values[[37, 200]] = np.nan, np.inf
    return values


def compare(first, second):
    np.testing.assert_allclose(np.asarray(first).astype(float), np.asarray(second).astype(float), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("processor, gpu", [(stumpy.stump, stumpy.gpu_stump), (stumpy.aamp, stumpy.gpu_aamp)])
@pytest.mark.parametrize("prepare", [lambda values: values, with_gaps], ids=["finite", "gaps"])
def test_self_join(processor, gpu, prepare):
    values = prepare(series(1))
    compare(processor(values, WINDOW), gpu(values, WINDOW))


@pytest.mark.parametrize("processor, gpu", [(stumpy.stump, stumpy.gpu_stump), (stumpy.aamp, stumpy.gpu_aamp)])
def test_join_of_two_series(processor, gpu):
    first, second = series(2), series(3, 250)
    compare(processor(first, WINDOW, second, ignore_trivial=False), gpu(first, WINDOW, second, ignore_trivial=False))


@pytest.mark.parametrize("processor, gpu", [(stumpy.stump, stumpy.gpu_stump), (stumpy.aamp, stumpy.gpu_aamp)])
def test_three_nearest_neighbours(processor, gpu):
    values = series(4, 200)
    compare(processor(values, WINDOW, k=3), gpu(values, WINDOW, k=3))


@pytest.mark.parametrize("processor, gpu", [(stumpy.ostinato, stumpy.gpu_ostinato), (stumpy.aamp_ostinato, stumpy.gpu_aamp_ostinato)])
def test_consensus_motif(processor, gpu):
    all_series = [series(seed, 120) for seed in (5, 6, 7)]
    compare(processor(all_series, WINDOW), gpu(all_series, WINDOW))


@pytest.mark.parametrize("processor, gpu", [(stumpy.mpdist, stumpy.gpu_mpdist), (stumpy.aampdist, stumpy.gpu_aampdist)])
def test_distance_of_two_series(processor, gpu):
    first, second = series(8, 200), series(9, 150)
    compare(processor(first, second, WINDOW), gpu(first, second, WINDOW))


@pytest.mark.parametrize("processor, gpu", [(stumpy.stimp, stumpy.gpu_stimp), (stumpy.aamp_stimp, stumpy.gpu_aamp_stimp)])
def test_profiles_of_many_windows(processor, gpu):
    values = series(10, 120)
    both = [function(values, min_m=8, max_m=16, step=4, percentage=1.0) if function in (processor,) else
            function(values, min_m=8, max_m=16, step=4) for function in (processor, gpu)]
    for each in both:
        for _ in range(3):
            each.update()
    compare(both[0].PAN_, both[1].PAN_)
