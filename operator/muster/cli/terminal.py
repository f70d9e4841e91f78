"""Lines on a terminal: Muster's own, and those of a job's processes with who printed them, in a colour of the role."""

from rich.console import Console
from rich.text import Text

_COLOURS = {
    "worker": ("green", "cyan", "blue", "bright_green", "bright_cyan", "bright_blue"),
    "server": ("magenta", "bright_magenta"),
    "profiler": ("yellow",),
}


class Terminal:
    """Standard output. May be used from several threads."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, markup=False, soft_wrap=True)
        self._said = ""

    def say(self, text: str) -> None:
        """A line of Muster's own, not twice in a row: two conditions can have one reason."""
        if text != self._said:
            self._said = text
            self.console.print(Text(f"muster: {text}", style="bold"))

    def plain(self, text: str) -> None:
        """A line as it is."""
        self.console.print(text)

    def prefixed(self, role: str, index: int, text: str) -> None:
        """A process's line."""
        colours = _COLOURS.get(role, ("white",))
        who = Text(f"[{role}-{index}] ", style=colours[index % len(colours)])
        self.console.print(who.append(text, style="default"))
