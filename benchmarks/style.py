"""How the benchmarks' plots look: black on white, told apart by line, marker and hatch, never by colour."""

STYLE: dict[str, object] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "savefig.dpi": 130,
    "svg.hashsalt": "muster",
}
