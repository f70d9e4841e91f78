"""The layer formula for memory, against the published sizes of known nets."""

import pytest
from muster.sizing import memory
from muster.sizing.memory import Copies, Layer, connected, convolution

MIB = 1 << 20


def alexnet(groups=2):
    """227 x 227 inputs; pools have no parameters."""
    return [
        convolution((55, 55, 96), 11, 3),
        Layer(27 * 27 * 96),
        convolution((27, 27, 256), 5, 96, groups=groups),
        Layer(13 * 13 * 256),
        convolution((13, 13, 384), 3, 256),
        convolution((13, 13, 384), 3, 384, groups=groups),
        convolution((13, 13, 256), 3, 384, groups=groups),
        Layer(6 * 6 * 256),
    ]


def vgg16():
    layers, side, depth = [], 224, 3
    for stage in ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3):
        for channels in stage:
            layers.append(convolution((side, side, channels), 3, depth))
            depth = channels
        side //= 2
        layers.append(Layer(side * side * depth))
    return layers


def resnet50():
    """Convolutions with batch normalisation: two parameters a channel and no bias."""

    def conv(side, channels, kernel, depth):
        return convolution((side, side, channels), kernel, depth, terms=2)

    layers, depth = [conv(112, 64, 7, 3)], 64
    for side, width, blocks in ((56, 64, 3), (28, 128, 4), (14, 256, 6), (7, 512, 3)):
        for block in range(blocks):
            layers += [conv(side, width, 1, depth), conv(side, width, 3, width), conv(side, 4 * width, 1, width)]
            if block == 0:
                layers.append(conv(side, 4 * width, 1, depth))
            depth = 4 * width
    return [*layers, connected(2048, 1000)]


CLASSIFIERS = {
    "alexnet": [connected(9216, 4096), connected(4096, 4096), connected(4096, 1000)],
    "vgg16": [connected(25088, 4096), connected(4096, 4096), connected(4096, 1000)],
}


@pytest.mark.parametrize(
    ("layers", "parameters"),
    [
        (alexnet() + CLASSIFIERS["alexnet"], 60_965_224),
        (alexnet(groups=1) + CLASSIFIERS["alexnet"], 62_378_344),
        (vgg16() + CLASSIFIERS["vgg16"], 138_357_544),
        (resnet50(), 25_557_032),
        ([connected(25088, 4096)], 102_760_448 + 4096),
    ],
)
def test_parameters(layers, parameters):
    assert memory.parameters(layers) == parameters


def test_feature_maps():
    stages = [layer.outputs for layer in alexnet()]
    assert stages == [290400, 69984, 186624, 43264, 64896, 64896, 43264, 9216]
    assert memory.feature_bytes(alexnet(), 128) / MIB == pytest.approx(377.22, abs=0.01)
    with_input = [Layer(227 * 227 * 3), *alexnet()]
    assert sum(layer.outputs for layer in with_input) == 927_131
    assert memory.feature_bytes(with_input, 128) / MIB == pytest.approx(452.70, abs=0.01)
    assert sum(layer.outputs for layer in vgg16()) == 15_077_888
    assert memory.feature_bytes(vgg16(), 128) / 1024 / MIB == pytest.approx(7.190, abs=0.001)


def test_what_is_left_for_workspaces_may_be_less_than_nothing():
    layers = [Layer(100, 10)]
    assert memory.iteration_bytes(layers, 8, Copies(activations=2, parameters=3)) == 4 * (2 * 8 * 100 + 3 * 10)
    assert memory.workspace_bound(10_000, layers, 8, Copies(2, 3)) == 10_000 - 6_520
    assert memory.workspace_bound(1_000, layers, 8, Copies()) < 0
