"""What an iteration needs of a GPU's memory by the layer formula, and what that leaves for convolution workspaces.

    M_bound = M_gpu - M_fm - M_mp - M_c

(Zou et al. 2017, arXiv 1709.06622): feature maps, convolution parameters, classifier. A measured peak beats the
formula, which knows no fragmentation and no framework: both are reported, with their ratio.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

BYTES = 4
"""Of a single-precision number."""


@dataclass(frozen=True)
class Layer:
    """A convolution, pooling or fully connected layer: elements it puts out for one sample, and parameters it has."""

    outputs: int
    parameters: int = 0


@dataclass(frozen=True)
class Copies:
    """How often each number is kept: activations 1, or 2 with their gradients; parameters with gradient and state."""

    activations: int = 1
    parameters: int = 1


def convolution(
    output: Sequence[int], kernel: int, depth_in: int, *, groups: int = 1, terms: int = 1, bias: bool = True
) -> Layer:
    """A convolution with `output` (width, height, depth) and kernel F x F over `depth_in` channels.

    `terms`: parameters a channel beside the kernel (1 for a bias, 2 for batch normalisation).
    """
    depth = output[-1]
    return Layer(prod(output), kernel**2 * (depth_in // groups) * depth + (terms * depth if bias else 0))


def connected(inputs: int, outputs: int) -> Layer:
    """A fully connected layer with bias: the classifier's kind."""
    return Layer(outputs, inputs * outputs + outputs)


def parameters(layers: Sequence[Layer]) -> int:
    """Parameters of all layers, in elements."""
    return sum(layer.parameters for layer in layers)


def feature_bytes(layers: Sequence[Layer], minibatch: int, *, copies: int = 1, width: int = BYTES) -> int:
    """M_fm: what the layers put out for a whole mini-batch."""
    return width * copies * minibatch * sum(layer.outputs for layer in layers)


def iteration_bytes(layers: Sequence[Layer], minibatch: int, copies: Copies, *, width: int = BYTES) -> int:
    """M_fm + M_mp + M_c: activations and parameters of every layer, convolution or classifier."""
    features = feature_bytes(layers, minibatch, copies=copies.activations, width=width)
    return features + width * copies.parameters * parameters(layers)


TRAINING = Copies(activations=2, parameters=3)
"""Activations with their gradients; parameters with gradient and momentum."""


def workspace_bound(memory: int, layers: Sequence[Layer], minibatch: int, copies: Copies, *, width: int = BYTES) -> int:
    """M_bound by the formula, negative where the mini-batch does not fit at all."""
    return memory - iteration_bytes(layers, minibatch, copies, width=width)
