"""Make ``theme/static/math.woff`` from STIX Two Math: for maintainers, and rarely.

``python notebooks/machine/site/math_font.py STIXTwoMath-Regular.ttf`` keeps the signs
that formulas use. It needs fontTools, which matplotlib brings. The
font is under the SIL Open Font License 1.1 and reserves no name; what is changed is
said here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

PLACE = Path(__file__).resolve().parent / "theme" / "static" / "math.woff"
FEATURES = ["ssty", "flac", "dtls"]  # small scripts, flat accents, dotless letters
ROOT_SIGN = 0x221A
SIGNS = """
20-7E A0 AC AF B0-B7 D7 F7 131 237 2C6 2C7 2DC 300-308 30C 332 338 391-3A9 3B1-3C9
3D1 3D5 3F5 2013 2014 2016 2018-201D 2020-2022 2026 2032-2034 203E 2044 2061-2064 20D7
210E 210F 2113 2115 211D 2124 2190-2194 21A6 21D0-21D4 2200-220D 220F-2213 2215-221E
2223-222B 2234 2235 223C 2243 2245 2248 2254 225F-2265 226A 226B 2282-2287 2295-2299
22A4 22A5 22C5 22EE-22F1 2308-230B 239B-23AE 23B7 23D0 23DE 23DF 27E8 27E9 27F5-27F8
1D400-1D467 1D670-1D6A5 1D6E2-1D71B 1D7CE-1D7D7 1D7F6-1D7FF
"""


def characters() -> list[int]:
    """The code points of `SIGNS`."""
    found: list[int] = []
    for word in SIGNS.split():
        first, _, last = word.partition("-")
        found += range(int(first, 16), int(last or first, 16) + 1)
    return found


def narrow_roots(font: TTFont) -> None:
    """Tall root signs get the width of the small one.

    Chromium reserves the widest for every root: a gap stays behind the small ones.
    """
    small = font.getBestCmap()[ROOT_SIGN]
    variants = font["MATH"].table.MathVariants
    place = variants.VertGlyphCoverage.glyphs.index(small)
    tall = variants.VertGlyphConstruction[place]
    names = {record.VariantGlyph for record in tall.MathGlyphVariantRecord}
    names |= {part.glyph for part in tall.GlyphAssembly.PartRecords}
    width, _ = font["hmtx"][small]
    for name in names - {small}:
        advance, _ = font["hmtx"][name]
        outline = font["glyf"][name]
        outline.coordinates.scale((width / advance, 1))
        outline.coordinates.toInt()
        outline.recalcBounds(font["glyf"])
        font["hmtx"][name] = (width, outline.xMin)


def main(source: str) -> int:
    options = subset.Options(flavor="woff", hinting=False, layout_features=FEATURES)
    font = subset.load_font(source, options)
    keep = subset.Subsetter(options)
    keep.populate(unicodes=characters())
    keep.subset(font)
    narrow_roots(font)
    subset.save_font(font, str(PLACE), options)
    print(f"{PLACE.name}: {PLACE.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
