"""A framework and a script that are made up, on a clock that is. This also stands for a GPU, whose framework has a
place of its own for batches."""

from muster_profiler.agent import Stop
from profiler.canned import MS


class Device:
    """A made-up framework whose time passes only when the script says so."""

    name, version = "Made up", "1.0"

    def __init__(self, *, has_memory_of_its_own=False, rank=0, world=1):
        self.now, self.copies, self.own_memory, self._rank, self._world = 0, 0, has_memory_of_its_own, rank, world
        self.used, self.kept, self.on_device, self.first_copy = 0, 0, set(), 0
        self.pretence, self.has_room = None, True
        self.facts = {"retries": 0, "reservedPeakBytes": 900}

    def rank(self):
        return self._rank

    def world(self):
        return self._world

    def optimizers_exist(self):
        return True

    def mark(self):
        return self.now

    def nanoseconds(self, begin, end, _own):
        return end - begin

    def host_seconds(self, begin, end):
        return (end - begin) / 1e9

    def keep(self, _batch):
        self.kept += 1
        return Kept(self, self.kept)

    def pretend(self):
        return self.pretence

    def resident_differs(self):
        return self.own_memory

    def device(self):
        return {"kind": "made up", "name": "x", "memoryBytes": 10_000, "count": 1}

    def parameters(self):
        return {"bytes": 4, "exchangedBytes": 4, "tensors": []}

    def restart_peak(self):
        self.highest = self.used

    def peak(self):
        return self.highest

    def use(self, amount):
        self.highest = max(self.highest, amount)

    highest = 0

    def memory_facts(self):
        return dict(self.facts)

    def convolutional(self):
        return False

    def environment(self):
        return {}

    def warnings(self):
        return []


class Kept:
    """One of its batches, by its number."""

    bytes, samples = 8, 4

    def __init__(self, device, number):
        self.device, self.number = device, number

    def outline(self):
        return f"outline of {self.number}"

    def again(self, resident):
        if resident and not self.device.has_room:
            raise RuntimeError("CUDA out of memory")
        if resident and self.number not in self.device.on_device:
            self.device.on_device.add(self.number)
            self.device.now += self.device.first_copy
        return "resident" if resident else "frozen"


class Source:
    """One pass over 50 batches."""

    key, workers, prefetched, length, batch_size, samples = 1, 0, 0, 50, 4, 200

    def __init__(self):
        self.position = self.repeated = 0


class Script:
    """Loads for 10 ms, copies to the device for 7, computes for 100, updates for 5."""

    def __init__(self, agent, device):
        self.agent, self.device, self.trained = agent, device, 0
        self.fails_on_device = False

    def batches(self):
        source = Source()

        def produce():
            if source.position - source.repeated >= 50:
                raise StopIteration
            self.device.now += 10 * MS
            return "natural"

        while True:
            try:
                batch = self.agent.fetch(source, produce)
            except StopIteration:
                return
            source.position += 1
            yield batch

    def train(self, epochs=100):
        try:
            for _ in range(epochs):
                for batch in self.batches():
                    self.iterate(batch)
        except Stop:
            pass
        except RuntimeError as error:
            self.agent.failed(error)
        self.agent.script_ended()

    def iterate(self, batch):
        if batch == "resident" and self.fails_on_device:
            raise RuntimeError("expected a batch on the host")
        self.device.now += 0 if batch == "resident" else 7 * MS
        self.device.now += 100 * MS
        self.device.use(900)
        self.agent.backward()
        self.agent.step_begin(self)
        self.device.now += 5 * MS
        self.device.use(700)
        self.agent.step_end(closure=False)
        self.trained += 1
