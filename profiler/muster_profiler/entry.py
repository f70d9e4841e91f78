"""The declared entry point: a training step that the profiler drives itself, for scripts whose loop it cannot see.

`entry package.module:function` calls the function with the mini-batch; it returns an object or a dictionary with
`batch` (a function of nothing that makes one batch), `optimizer`, and either `step` (a function of a batch that does
the whole iteration) or `model` and `loss` (a function of the model and a batch that returns the loss to go backward
from). The loop below is then profiled like any script.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Callable, cast

ITERATIONS = 100_000


def main(name: str, mini_batch: int) -> None:
    """Train until the profiler has seen enough.

    :raises SystemExit: with a sentence, if the entry point is not as it must be
    """
    batch, step = _step(_declared(name, mini_batch))
    import torch.utils.data

    class Batches(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return ITERATIONS

        def __getitem__(self, index: int) -> Any:
            return batch()

    for made in torch.utils.data.DataLoader(Batches(), batch_size=None):
        step(made)


def _declared(name: str, mini_batch: int) -> Any:
    module, colon, function = name.partition(":")
    if not colon:
        sys.exit("the entry point must be given as package.module:function, not %r" % name)
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name != module and not module.startswith(str(error.name) + "."):
            raise
        sys.exit("there is no module %s: its directory must be on PYTHONPATH, or be the working directory" % module)
    except AttributeError:
        sys.exit("the module %s has no function %s" % (module, function))
    return found(mini_batch)


def _step(declared: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    parts = declared if isinstance(declared, dict) else {key: getattr(declared, key, None) for key in _PARTS}
    batch, optimizer, step, model, loss = (cast("Any", parts.get(key)) for key in _PARTS)
    if batch is None or (step is None and (optimizer is None or model is None or loss is None)):
        sys.exit("the entry point must return `batch` and `step`, or `batch`, `optimizer`, `model` and `loss`")
    if step is not None:
        return batch, step

    def whole(made: Any) -> None:
        optimizer.zero_grad()
        loss(model, made).backward()
        optimizer.step()

    return batch, whole


_PARTS = ("batch", "optimizer", "step", "model", "loss")

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
