# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG: bars and curves, legible on light and on dark pages."""
import html
import math

WIDTH, MARGIN, LINE = 860, 16, 18
SERIES = ("a", "b", "c", "d", "e", "f")  # classes with a colour each
STYLE = """<style>
text{fill:#1f2328;font:13px sans-serif}.small{font-size:12px}.value{font-size:10px}.title{font-size:15px;font-weight:bold}
.back{fill:#ffffff}.grid{stroke:#d0d7de}.one{stroke:#57606a;stroke-dasharray:4 3}.axis{stroke:#57606a}
.a{fill:#0969da;stroke:#0969da}.b{fill:#bc4c00;stroke:#bc4c00}.c{fill:#1a7f37;stroke:#1a7f37}.d{fill:#8250df;stroke:#8250df}
.e{fill:#9a6700;stroke:#9a6700}.f{fill:#bf3989;stroke:#bf3989}.line{fill:none;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117}.grid{stroke:#30363d}.one,.axis{stroke:#9198a1}
.a{fill:#4493f8;stroke:#4493f8}.b{fill:#f0883e;stroke:#f0883e}.c{fill:#3fb950;stroke:#3fb950}.d{fill:#ab7df8;stroke:#ab7df8}
.e{fill:#d29922;stroke:#d29922}.f{fill:#f778ba;stroke:#f778ba}.line{fill:none}}
</style>"""


def text(x, y, words, anchor="start", kind="", turn=None):
    turned = f' transform="rotate({turn} {x:g} {y:g})"' if turn is not None else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}{turned}>{html.escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" class="{kind}"/>'


def page(width, height, title, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img">'
    return "\n".join([head, f"<title>{html.escape(title)}</title>", STYLE, f'<rect width="{width:g}" height="{height:g}" class="back"/>', *parts, "</svg>", ""])


def number(value):
    """10, 0.5, 1,000, 10^6."""
    if value >= 1e5:
        power = math.log10(value)
        return f"10^{power:.0f}" if power == round(power) else f"{value:.1e}"
    return f"{value:,.10g}"


class Scale:
    """From values to places; logarithmic, or linear from 0."""

    def __init__(self, low, high, begin, end, logarithmic):
        self.logarithmic, self.begin, self.end = logarithmic, begin, end
        if logarithmic:
            self.low, self.high = math.floor(math.log10(low) * 3 + 1e-9) / 3, math.ceil(math.log10(high) * 3 - 1e-9) / 3
            self.high = max(self.high, self.low + 1 / 3)
        else:
            step = 10 ** math.floor(math.log10(high / 2)) if high > 0 else 1
            self.step = next(step * factor for factor in (1, 2, 5, 10) if high / (step * factor) <= 6)
            self.low, self.high = 0, math.ceil(high / self.step - 1e-9) * self.step or 1

    def __call__(self, value):
        place = math.log10(value) if self.logarithmic else value
        return self.begin + (place - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self):
        if not self.logarithmic:
            return [self.step * k for k in range(int(self.high / self.step + 1.5))]
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        factors = (1, 2, 5) if self.high - self.low <= 2.5 else (1,)
        return [factor * 10.0**power for power in powers for factor in factors
                if self.low - 1e-9 <= math.log10(factor * 10.0**power) <= self.high + 1e-9]


def legend(names, x, y):
    parts = []
    for kind, name in zip(SERIES, names):
        parts += [f'<rect x="{x:g}" y="{y - 10:g}" width="11" height="11" class="{kind}"/>', text(x + 16, y, name)]
        x += 34 + 7.5 * len(name)
    return parts


def bars(title, axis, series, rows):
    """Bars to the right on a logarithmic axis with a line at 1. series: names; rows: (label, values in the series' order; None: no bar)."""
    values = [value for _, row in rows for value in row if value is not None]
    left, right, top = 250, WIDTH - 60, 74
    thick = 13 if len(series) == 1 else 11
    step = thick * len(series) + (5 if len(series) == 1 else 9)
    bottom = top + step * len(rows)
    scale = Scale(min([*values, 1]), max([*values, 1]), left, right, True)
    parts = [text(MARGIN, 26, title, kind="title"), *(legend(series, MARGIN, 50) if len(series) > 1 else [])]
    for tick in scale.ticks():
        parts += [line(scale(tick), top, scale(tick), bottom, "grid"), text(scale(tick), bottom + 16, number(tick), "middle", "small")]
    one = scale(1)
    for index, (label, row) in enumerate(rows):
        y = top + index * step
        parts.append(text(left - 8, y + (step + 6) / 2, label, "end", "small"))
        for kind, value, place in zip(SERIES, row, range(len(row))):
            if value is None:
                continue
            x = scale(value)
            parts.append(f'<rect x="{min(x, one):g}" y="{y + 3 + place * thick:g}" width="{max(abs(x - one), 1):.1f}" height="{thick - 2}" class="{kind}"/>')
            parts.append(text(max(x, one) + 4, y + 3 + place * thick + thick - 3, f"{value:.2f}" if value < 9.95 else f"{value:.0f}", kind="value"))
    parts += [line(one, top, one, bottom, "one"), text((left + right) / 2, bottom + 36, axis, "middle")]
    return page(WIDTH, bottom + 50, title, parts)


def panel(chart, x, y, width, height):
    """One chart of curves: dictionary with title, x and y (labels), log (axes), series {name: [(x, y), ...]}."""
    points = [point for curve in chart["series"].values() for point in curve]
    left, right, top, bottom = x + 62, x + width - 26, y + 52, y + height - 44
    across = Scale(min(p[0] for p in points), max(p[0] for p in points), left, right, "x" in chart["log"])
    up = Scale(min(p[1] for p in points), max(p[1] for p in points), bottom, top, "y" in chart["log"])
    parts = [text(x + 8, y + 18, chart["title"], kind="title")]
    if len(chart["series"]) > 1 or "" not in chart["series"]:
        parts += legend(chart["series"], x + 8, y + 38)
    for tick in across.ticks():
        parts += [line(across(tick), top, across(tick), bottom, "grid"), text(across(tick), bottom + 16, number(tick), "middle", "small")]
    for tick in up.ticks():
        parts += [line(left, up(tick), right, up(tick), "grid"), text(left - 5, up(tick) + 4, number(tick), "end", "small")]
    parts += [line(left, bottom, right, bottom, "axis"), line(left, top, left, bottom, "axis")]
    for kind, curve in zip(SERIES, chart["series"].values()):
        path = " ".join(f"{'L' if k else 'M'}{across(px):.1f} {up(py):.1f}" for k, (px, py) in enumerate(curve))
        parts.append(f'<path d="{path}" class="{kind} line"/>')
        parts += [f'<circle cx="{across(px):.1f}" cy="{up(py):.1f}" r="3" class="{kind}"/>' for px, py in curve]
    return [*parts, text((left + right) / 2, bottom + 36, chart["x"], "middle", "small"), text(x + 14, (top + bottom) / 2, chart["y"], "middle", "small", -90)]


def curves(title, charts):
    """Panels, two a line."""
    wide, high = WIDTH / 2, 300
    parts = []
    for index, chart in enumerate(charts):
        parts += panel(chart, index % 2 * wide, index // 2 * high, wide, high)
    return page(WIDTH, math.ceil(len(charts) / 2) * high, title, parts)
