"""Wrong programs that learners of lesson 04 really write, each with its own words.

Every program is right except for one thing, so the right pieces stand first.
``share`` is how much of a pair is interpolated: 0 keeps its frequency, 1 divides it.
"""

from __future__ import annotations

import math

import torch

from apex_lessons.exercises.diagnosis import Mistake

MISTAKES: list[Mistake] = []


def mistake(name: str, check: str, explanation: str):
    """Put the program below into the catalogue under this name, with these words."""
    def keep(function):
        function.__name__ = name.replace("-", "_")
        MISTAKES.append(Mistake(name, check, function, explanation))
        return function
    return keep


# The right pieces


def frequencies(head_dim, base):
    return base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)


def turns(head_dim, base, trained_length):
    return trained_length * frequencies(head_dim, base) / (2 * math.pi)


def bound(rotations, head_dim, base, trained_length):
    """The pair, as a real number, that makes so many rotations in trained_length."""
    ratio = trained_length / (2 * math.pi * rotations)
    return head_dim * math.log(ratio) / (2 * math.log(base))


def rounded_bounds(head_dim, base, trained_length, beta_fast, beta_slow):
    low = math.floor(bound(beta_fast, head_dim, base, trained_length))
    high = math.ceil(bound(beta_slow, head_dim, base, trained_length))
    return max(low, 0), min(high, head_dim - 1)


def line(low, high, pairs):
    width = high - low if high != low else 0.001
    return (torch.arange(pairs, dtype=torch.float64) - low) / width


def pair_share(head_dim, base, trained_length, beta_fast, beta_slow):
    low, high = rounded_bounds(head_dim, base, trained_length, beta_fast, beta_slow)
    return line(low, high, head_dim // 2).clamp(0, 1)


def rotation_share(head_dim, base, trained_length, beta_fast, beta_slow):
    width = max(beta_fast - beta_slow, 1e-9)
    kept = (turns(head_dim, base, trained_length) - beta_slow) / width
    return 1 - kept.clamp(0, 1)


def blend(plain, factor, share):
    return plain / factor * share + plain * (1 - share)


# check_position_interpolation: f(positions, head_dim, base, factor, trained_length)

INTERPOLATION = "check_position_interpolation"


def angles(positions, inv_freq):
    return positions.to(torch.float64)[:, None] * inv_freq


@mistake("positions-clamped", INTERPOLATION,
         "Past the trained length all your positions have the same angles: they were"
         " divided and then clamped. Every late token would sit in one place."
         " Interpolation squeezes the positions and never cuts them off; try two"
         " different positions far out.")
def _(positions, head_dim, base, factor, trained_length):
    squeezed = (positions / factor).clamp(max=trained_length - 1)
    return angles(squeezed, frequencies(head_dim, base))


@mistake("clamped-not-divided", INTERPOLATION,
         "Short positions keep their angle and late ones all share one. Position"
         " interpolation changes every position by the same share: divide, do not cut.")
def _(positions, head_dim, base, factor, trained_length):
    return angles(positions.clamp(max=trained_length - 1), frequencies(head_dim, base))


@mistake("positions-rounded", INTERPOLATION,
         "Neighbouring positions get the same angle: the divided positions were"
         " rounded to whole numbers. A position may be a fraction; use / and not //.")
def _(positions, head_dim, base, factor, trained_length):
    return angles(positions // factor, frequencies(head_dim, base))


@mistake("positions-multiplied", INTERPOLATION,
         "Your angles grow where they should shrink: the factor multiplies. A factor"
         " of 4 means that 4 times as many positions must fit into the angles already"
         " seen.")
def _(positions, head_dim, base, factor, trained_length):
    return angles(positions * factor, frequencies(head_dim, base))


@mistake("nothing-divided", INTERPOLATION,
         "These are the angles of plain RoPE: the factor changes nothing yet.")
def _(positions, head_dim, base, factor, trained_length):
    return angles(positions, frequencies(head_dim, base))


@mistake("factor-inside-the-power-angles", INTERPOLATION,
         "Pair 0 is untouched and the others are divided by a growing amount: the"
         " factor stands inside the power, as a larger base. Position interpolation"
         " divides every pair by the same number, pair 0 as well.")
def _(positions, head_dim, base, factor, trained_length):
    return angles(positions, frequencies(head_dim, base * factor))


@mistake("ntk-base-angles", INTERPOLATION,
         "Only the slowest pair is divided by the factor, the fastest not at all:"
         " this is NTK-aware scaling, which changes the base. Interpolation changes"
         " the positions.")
def _(positions, head_dim, base, factor, trained_length):
    larger = base * factor ** (head_dim / (head_dim - 2))
    return angles(positions, frequencies(head_dim, larger))


@mistake("only-slow-pairs-divided", INTERPOLATION,
         "You divide only the pairs that never finish a turn. That idea comes later,"
         " in NTK-by-parts; position interpolation treats all pairs alike.")
def _(positions, head_dim, base, factor, trained_length):
    plain = frequencies(head_dim, base)
    slow = turns(head_dim, base, trained_length) < 1
    return angles(positions, torch.where(slow, plain / factor, plain))


@mistake("angles-in-turns", INTERPOLATION,
         "All your numbers are smaller by 2 pi: these are turns. Angles are in"
         " radians, position times frequency.")
def _(positions, head_dim, base, factor, trained_length):
    return angles(positions / factor, frequencies(head_dim, base)) / (2 * math.pi)


@mistake("angles-in-degrees", INTERPOLATION,
         "All your numbers are larger by 180/pi: these are degrees. cos and sin want"
         " radians.")
def _(positions, head_dim, base, factor, trained_length):
    return torch.rad2deg(angles(positions / factor, frequencies(head_dim, base)))


@mistake("cosines-for-angles", INTERPOLATION,
         "No number leaves the range from -1 to 1: you return the cosines. The angles"
         " themselves are asked for.")
def _(positions, head_dim, base, factor, trained_length):
    return angles(positions / factor, frequencies(head_dim, base)).cos()


# check_regime_counts: f(head_dim, base, factor, trained_length, beta_fast, beta_slow)

COUNTS = "check_regime_counts"


def counted(rotations, beta_fast, beta_slow):
    kept, divided = (rotations > beta_fast), (rotations < beta_slow)
    return int(kept.sum()), int((~kept & ~divided).sum()), int(divided.sum())


@mistake("counts-by-the-printed-rule", COUNTS,
         "Your cuts are wavelengths of beta_fast tokens and of beta_slow * factor"
         " tokens: the rule that the reference prints. The betas count rotations over"
         " the trained length. Ask your function for two trained lengths: its answer"
         " does not move, and it must.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    wavelength = 2 * math.pi / frequencies(head_dim, base)
    kept = wavelength < beta_fast
    divided = ~kept & (wavelength > beta_slow * factor)
    return int(kept.sum()), int((~kept & ~divided).sum()), int(divided.sum())


@mistake("factor-moves-the-band", COUNTS,
         "Your lower cut depends on the factor. How often a pair turned in training"
         " has nothing to do with how far we want to go now: the same model keeps the"
         " same three groups for every factor.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    rotations = turns(head_dim, base, trained_length)
    return counted(rotations, beta_fast, beta_slow / factor)


@mistake("rotations-over-the-extended-length", COUNTS,
         "You count the rotations over the extended length, factor times too many."
         " The question is what each pair saw in training: use the trained length.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    rotations = turns(head_dim, base, trained_length * factor)
    return counted(rotations, beta_fast, beta_slow)


@mistake("radians-for-rotations", COUNTS,
         "You compare radians with the betas: trained length times frequency is an"
         " angle. One rotation is 2 pi of it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    rotations = trained_length * frequencies(head_dim, base)
    return counted(rotations, beta_fast, beta_slow)


@mistake("rotations-upside-down", COUNTS,
         "You divide the wavelength by the trained length. Rotations are the other"
         " way round: how many wavelengths fit into the trained length.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    return counted(1 / turns(head_dim, base, trained_length), beta_fast, beta_slow)


@mistake("groups-in-reverse", COUNTS,
         "The three numbers are right and their order is reversed: the pairs that"
         " turn most often are the ones that stay unchanged, and they come first.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    rotations = turns(head_dim, base, trained_length)
    return counted(rotations, beta_fast, beta_slow)[::-1]


@mistake("dimensions-counted", COUNTS,
         "Your three numbers add up to head_dim. Two dimensions make one pair, and a"
         " pair has one frequency: count pairs.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    rotations = turns(head_dim, base, trained_length)
    return tuple(2 * n for n in counted(rotations, beta_fast, beta_slow))


@mistake("betas-swapped-in-counts", COUNTS,
         "A pair lands in two groups at once: the betas are swapped. beta_fast is the"
         " larger number of rotations; a pair that turns more often than that is left"
         " alone.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    rotations = turns(head_dim, base, trained_length)
    return counted(rotations, beta_slow, beta_fast)


@mistake("betas-hard-coded-in-counts", COUNTS,
         "Right for 32 and 1, wrong for other betas: use the arguments. Devstral"
         " ships 4 and 1, Kimi-K2 ships 1 and 1.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    return counted(turns(head_dim, base, trained_length), 32, 1)


@mistake("exponent-without-two-in-counts", COUNTS,
         "Your frequencies fall too slowly: pair i has the exponent -2i/head_dim, so"
         " that the last pair comes close to 1/base.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    slow = base ** (-torch.arange(head_dim // 2, dtype=torch.float64) / head_dim)
    return counted(trained_length * slow / (2 * math.pi), beta_fast, beta_slow)


# check_yarn: f(head_dim, base, factor, trained_length, beta_fast, beta_slow)

YARN, PAPER = "check_yarn", "check_paper_yarn"


@mistake("swapped-betas", YARN,
         "Your ramp runs backwards because beta_fast and beta_slow have changed"
         " places: the fastest pair is divided and the slowest is left alone."
         " beta_fast, the larger, belongs to the lower end of the ramp, where pairs"
         " turn often.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    share = pair_share(head_dim, base, trained_length, beta_slow, beta_fast)
    return blend(plain, factor, share)


@mistake("ramp-upside-down", YARN,
         "The bounds are right and the two ends of the blend have changed places:"
         " your fastest pair is divided, your slowest is not. The ramp grows from 0 to"
         " 1 with the pair number; at 1 the pair is interpolated.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(plain, factor, 1 - share)


@mistake("trained-length-ignored", YARN,
         "Your answer does not move with trained_length: a fixed number (2048, the"
         " default of some libraries) stands in its place. The same rotations need"
         " another pair when training was longer.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    return blend(plain, factor, pair_share(head_dim, base, 2048, beta_fast, beta_slow))


@mistake("trained-length-fixed", YARN,
         "Right for models trained on 4,096 tokens and wrong for the others: 4096"
         " stands in your program where the argument trained_length should.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    return blend(plain, factor, pair_share(head_dim, base, 4096, beta_fast, beta_slow))


@mistake("extended-length-for-trained", YARN,
         "You count rotations over the extended length (trained length times factor)."
         " The ramp asks what each pair saw in training. This slip also happens when a"
         " config gives no original length and the new maximum is taken for it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    share = pair_share(head_dim, base, trained_length * factor, beta_fast, beta_slow)
    return blend(plain, factor, share)


@mistake("wavelengths-blended", YARN,
         "Both ends of the ramp are right and the middle is too slow: you blend"
         " wavelengths (or divisors) and not frequencies. The paper allows other"
         " blends in a footnote; its own formula and every library mix the two"
         " frequencies.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return frequencies(head_dim, base) / (factor * share + 1 - share)


@mistake("two-pi-forgotten", YARN,
         "Your band lies too far down: a rotation is 2 pi radians, and the 2 pi is"
         " missing where the rotations are counted. Check with one rotation: the"
         " wavelength of that pair must equal the trained length.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    longer = trained_length * 2 * math.pi
    share = pair_share(head_dim, base, longer, beta_fast, beta_slow)
    return blend(plain, factor, share)


@mistake("the-printed-rule", YARN,
         "This is the rule that the reference prints under YaRN's name: its cuts are"
         " wavelengths in tokens and trained_length plays no part. Change"
         " trained_length and your answer stays the same; YaRN's must move.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    wavelength = 2 * math.pi / plain
    middle = plain / (wavelength / beta_slow)
    slow = torch.where(wavelength > beta_slow * factor, plain / factor, middle)
    return torch.where(wavelength < beta_fast, plain, slow) if factor > 1 else plain


@mistake("position-interpolation", YARN,
         "Every pair is divided by the factor, pair 0 too: this is position"
         " interpolation (dividing the positions gives the same). YaRN leaves the fast"
         " pairs alone, because neighbours are told apart by them.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    return frequencies(head_dim, base) / factor


@mistake("plain-rope", YARN,
         "Nothing is divided: these are the frequencies of plain RoPE. If you did"
         " write a ramp, print its two ends: with the upper one below the lower one (a"
         " trained length that is missing from the bound does that) it switches itself"
         " off.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    return frequencies(head_dim, base)


@mistake("ntk-aware-scaling", YARN,
         "The divisor grows evenly from 1 at the first pair to the factor at the"
         " last: this is NTK-aware scaling, a larger base. YaRN keeps the base and"
         " divides by parts.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    return frequencies(head_dim, base * factor ** (head_dim / (head_dim - 2)))


@mistake("ntk-base-in-yarn", YARN,
         "Your unchanged pairs are not unchanged: an NTK base is mixed in. Pair 0 is"
         " right for any base; look at pair 1. The base stays as it was trained.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    kept = frequencies(head_dim, base * factor ** (head_dim / (head_dim - 2)))
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return frequencies(head_dim, base) / factor * share + kept * (1 - share)


@mistake("ntk-base-for-both-ends", YARN,
         "An NTK base is under your whole ramp: pair 1 is slower than it should be,"
         " and the last pair is divided twice. The base stays as it was trained; the"
         " factor divides once.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    larger = base * factor ** (head_dim / (head_dim - 2))
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, larger), factor, share)


@mistake("base-times-factor", YARN,
         "You multiply the base by the factor and have no ramp: the divisor grows"
         " evenly and never quite reaches the factor. YaRN keeps the base and divides"
         " by parts.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    return frequencies(head_dim, base * factor)


@mistake("factor-inside-the-power", YARN,
         "Your interpolated pairs are divided by different amounts: the factor stands"
         " inside the power, (factor * base) ** (-2i/d). Divide the frequency after"
         " the power.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    divided = frequencies(head_dim, base * factor)
    return divided * share + frequencies(head_dim, base) * (1 - share)


@mistake("factor-upside-down", YARN,
         "Slow pairs became faster: the factor is used the wrong way round. Some"
         " programs store 1/factor (0.25 for 4 times); here the factor is 1 or more,"
         " and slow pairs are divided by it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base), 1 / factor, share)


@mistake("ramp-index-doubled", YARN,
         "Your ramp counts dimensions: it steps by 2 from pair to pair. The bounds"
         " are pair numbers already: at the real pair number that the formula gives"
         " for one rotation, the wavelength is the trained length.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    low, high = rounded_bounds(head_dim, base, trained_length, beta_fast, beta_slow)
    share = line(low, high, head_dim)[::2].clamp(0, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("half-the-head-in-the-bound", YARN,
         "Your band begins and ends at half the pair number it should: the formula"
         " for the bound takes head_dim, and the 2 below the line already makes pairs"
         " of it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    low = math.floor(bound(beta_fast, head_dim / 2, base, trained_length))
    high = math.ceil(bound(beta_slow, head_dim / 2, base, trained_length))
    share = line(max(low, 0), min(high, head_dim - 1), head_dim // 2).clamp(0, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("two-forgotten-in-the-bound", YARN,
         "Your band begins and ends at twice the pair number it should: the formula"
         " divides by 2 ln(base), since the exponent of pair i is 2i/head_dim.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    low = math.floor(2 * bound(beta_fast, head_dim, base, trained_length))
    high = math.ceil(2 * bound(beta_slow, head_dim, base, trained_length))
    share = line(max(low, 0), min(high, head_dim - 1), head_dim // 2).clamp(0, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("clamped-to-the-last-pair", YARN,
         "Right for short training and wrong for long: you cut the upper bound at the"
         " last pair. The code of the authors cuts at head_dim - 1, so a ramp may end"
         " beyond the last pair and never reach 1. Try a trained length of 131,072.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    low, high = rounded_bounds(head_dim, base, trained_length, beta_fast, beta_slow)
    share = line(low, min(high, head_dim // 2 - 1), head_dim // 2).clamp(0, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("bounds-not-rounded", YARN,
         "The ramp is right except that its ends are not rounded. The code of the"
         " authors rounds the lower end down and the upper end up; only a model that"
         " says truncate: false (gpt-oss) leaves them as they are.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    low = max(bound(beta_fast, head_dim, base, trained_length), 0)
    high = min(bound(beta_slow, head_dim, base, trained_length), head_dim - 1)
    share = line(low, high, head_dim // 2).clamp(0, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("bounds-rounded-to-nearest", YARN,
         "The ends of your ramp are rounded to the nearest pair. Round the lower end"
         " down and the upper end up, so that the ramp never gets narrower than the"
         " band.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    low = max(round(bound(beta_fast, head_dim, base, trained_length)), 0)
    high = min(round(bound(beta_slow, head_dim, base, trained_length)), head_dim - 1)
    share = line(low, high, head_dim // 2).clamp(0, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("logarithms-mixed", YARN,
         "Two kinds of logarithm meet in your bound, so the band is in a wrong place."
         " Any base will do, if it is the same above and below the line.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    scale = math.log(10)  # log10 above the line, ln below it
    low = max(math.floor(bound(beta_fast, head_dim, base, trained_length) / scale), 0)
    high = min(math.ceil(bound(beta_slow, head_dim, base, trained_length) / scale),
               head_dim - 1)
    return blend(frequencies(head_dim, base), factor,
                 line(low, high, head_dim // 2).clamp(0, 1))


@mistake("logarithms-mixed-the-other-way", YARN,
         "Two kinds of logarithm meet in your bound, and the ramp begins and ends"
         " more than twice too late. Any base will do, if it is the same above and"
         " below the line.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    scale = math.log(10)  # ln above the line, log10 below it
    low = math.floor(bound(beta_fast, head_dim, base, trained_length) * scale)
    high = math.ceil(bound(beta_slow, head_dim, base, trained_length) * scale)
    share = line(max(low, 0), min(high, head_dim - 1), head_dim // 2).clamp(0, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("the-papers-ramp", YARN,
         "Your ramp is linear in the rotations, as the paper's equations print it."
         " That is a right reading of the paper; this check asks for the code of the"
         " authors, which is linear in the pair number. To have yours checked:"
         " check_yarn(f, ramp='rotations').")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = rotation_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("ramp-in-wavelengths", YARN,
         "The ends of your ramp are right, but it is linear in the wavelength, so"
         " nearly all of the band counts as fast. Make it linear in the pair number.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    short, long = trained_length / beta_fast, trained_length / beta_slow
    share = (2 * math.pi / plain - short) / max(long - short, 1e-9)
    return blend(plain, factor, share.clamp(0, 1))


@mistake("ramp-not-clamped", YARN,
         "Outside the band your ramp goes on, below 0 and above 1: fast pairs get"
         " faster than they were trained, and slow ones are divided by more than the"
         " factor. Clamp it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    low, high = rounded_bounds(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base), factor, line(low, high, head_dim // 2))


@mistake("a-step-for-the-ramp", YARN,
         "Pairs that turn at least beta_slow times are left alone and the others"
         " divided: there is no blend between. The band between the two betas needs a"
         " mixture.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    return torch.where(turns(head_dim, base, trained_length) < beta_slow,
                       plain / factor, plain)


@mistake("a-step-at-beta-fast", YARN,
         "Every pair that turns fewer than beta_fast times is divided in full: the"
         " band between the two betas needs a mixture, from nothing to all.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    plain = frequencies(head_dim, base)
    return torch.where(turns(head_dim, base, trained_length) < beta_fast,
                       plain / factor, plain)


@mistake("temperature-in-the-frequencies", YARN,
         "All your frequencies are too large by one and the same number: the"
         " attention factor got in. It belongs on cos and sin (it makes them longer),"
         " never on a frequency.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    scaled = blend(frequencies(head_dim, base), factor, share)
    return scaled * (0.1 * math.log(factor) + 1)


@mistake("betas-hard-coded", YARN,
         "Right for 32 and 1, wrong for other betas: use the arguments. Devstral"
         " ships 4 and 1, Kimi-K2 ships 1 and 1.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, 32, 1)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("wavelengths-returned", YARN,
         "Your numbers grow from pair to pair: these are wavelengths. Return radians"
         " per token, 2 pi divided by the wavelength.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return 2 * math.pi / blend(frequencies(head_dim, base), factor, share)


@mistake("base-not-inverted", YARN,
         "Your frequencies grow from pair to pair: the minus in the exponent is"
         " missing.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(1 / frequencies(head_dim, base), factor, share)


@mistake("exponent-without-two", YARN,
         "Your frequencies fall too slowly: the exponent of pair i is -2i/head_dim,"
         " so that the last pair comes close to 1/base.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base).sqrt(), factor, share)


@mistake("pairs-counted-from-one", YARN,
         "Pair 0 does not turn one radian a token: your pairs are counted from 1."
         " Count from 0, so that the first exponent is 0.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base) * base ** (-2 / head_dim), factor, share)


# The same check for the paper's ramp (check_yarn with ramp="rotations")


@mistake("the-codes-ramp", PAPER,
         "Your ramp is linear in the pair number, as in the code of the authors and"
         " in every library. The equations of the paper, asked for here, are linear in"
         " the rotations; the two agree at the ends of the band only.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = pair_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("rotation-ramp-upside-down", PAPER,
         "Your fastest pair is divided and your slowest is not: the betas have"
         " changed places, or the two ends of the blend have (with this ramp that is"
         " the same program). Many rotations mean: leave the pair alone.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = rotation_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base), factor, 1 - share)


@mistake("rotation-ramp-in-radians", PAPER,
         "You compare radians with the betas: trained length times frequency is an"
         " angle. One rotation is 2 pi of it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    longer = trained_length * 2 * math.pi
    share = rotation_share(head_dim, base, longer, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("rotation-ramp-over-the-extended-length", PAPER,
         "You count rotations over the extended length. The ramp asks what each pair"
         " saw in training: use the trained length alone.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    longer = trained_length * factor
    share = rotation_share(head_dim, base, longer, beta_fast, beta_slow)
    return blend(frequencies(head_dim, base), factor, share)


@mistake("rotation-ramp-blends-wavelengths", PAPER,
         "Both ends are right and the middle is too slow: you blend wavelengths (or"
         " divisors). A footnote of the paper allows that; its equation mixes the two"
         " frequencies.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = rotation_share(head_dim, base, trained_length, beta_fast, beta_slow)
    return frequencies(head_dim, base) / (factor * share + 1 - share)


@mistake("wavelength-over-length", PAPER,
         "You divide the wavelength by the trained length, so that slow pairs look"
         " busy. Rotations are the other way round: how many wavelengths fit into it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    rotations = 1 / turns(head_dim, base, trained_length)
    kept = (rotations - beta_slow) / max(beta_fast - beta_slow, 1e-9)
    return blend(frequencies(head_dim, base), factor, 1 - kept.clamp(0, 1))


@mistake("rotation-ramp-not-clamped", PAPER,
         "Outside the band your ramp goes on, below 0 and above 1: fast pairs get"
         " faster than they were trained. Clamp it.")
def _(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    width = max(beta_fast - beta_slow, 1e-9)
    kept = (turns(head_dim, base, trained_length) - beta_slow) / width
    return blend(frequencies(head_dim, base), factor, 1 - kept)


# check_attention_factor: f(factor)

FACTOR = "check_attention_factor"


@mistake("factor-already-squared", FACTOR,
         "You return the square. What multiplies cos and sin is asked for; the scores"
         " then get the square by themselves, once from q and once from k.")
def _(factor):
    return (0.1 * math.log(factor) + 1) ** 2


@mistake("temperature-for-its-root", FACTOR,
         "You return t, a number below 1 by which scores would be divided. The"
         " formula gives the square root of 1/t, which is above 1: it makes attention"
         " sharper.")
def _(factor):
    return (0.1 * math.log(factor) + 1) ** -2


@mistake("root-of-t", FACTOR,
         "Your number is below 1, the inverse of the one wanted. The paper writes the"
         " root of 1/t for what the DeepSeek reports write as the root of t; cos and"
         " sin get longer, not shorter.")
def _(factor):
    return 1 / (0.1 * math.log(factor) + 1)


@mistake("logarithm-to-ten", FACTOR,
         "Right at a factor of 1, too small elsewhere: the logarithm is the natural"
         " one.")
def _(factor):
    return 0.1 * math.log10(factor) + 1


@mistake("logarithm-to-two", FACTOR,
         "Right at a factor of 1, too large elsewhere: the logarithm is the natural"
         " one, not the one to base 2.")
def _(factor):
    return 0.1 * math.log2(factor) + 1


@mistake("one-forgotten", FACTOR,
         "At a factor of 1 nothing may change, and your function gives 0: the + 1 is"
         " missing.")
def _(factor):
    return 0.1 * math.log(factor)


@mistake("logarithm-of-factor-plus-one", FACTOR,
         "At a factor of 1 nothing may change, and your number is above 1: the + 1"
         " stands inside the logarithm.")
def _(factor):
    return 0.1 * math.log(factor + 1) + 1


@mistake("tenth-forgotten", FACTOR,
         "Your number grows ten times too fast with the logarithm: the 0.1 is"
         " missing.")
def _(factor):
    return math.log(factor) + 1


@mistake("no-logarithm", FACTOR,
         "Your number grows with the factor itself. It should grow with its"
         " logarithm, since the entropy of attention does.")
def _(factor):
    return 0.1 * (factor - 1) + 1


@mistake("no-temperature", FACTOR,
         "You return 1 for every factor: no temperature at all, which is"
         " NTK-by-parts. YaRN adds the temperature.")
def _(factor):
    return 1.0


@mistake("longrope-factor", FACTOR,
         "This is the factor of LongRoPE, the root of 1 + ln(factor)/ln(trained"
         " length). YaRN's needs no trained length.")
def _(factor):
    return math.sqrt(1 + math.log(factor) / math.log(4096))


@mistake("deepseek-v2-mscale", FACTOR,
         "This has the 0.707 of DeepSeek-V2 in it, one model's mscale. The default is"
         " 1.")
def _(factor):
    return 0.0707 * math.log(factor) + 1


# check_scaled_scores: f(q, k, cos, sin, factor)

SCORES = "check_scaled_scores"


def sharpen(factor):
    return 0.1 * math.log(factor) + 1


def turned(x, cos, sin):
    first, second = x[..., 0::2], x[..., 1::2]
    both = torch.stack((first * cos - second * sin, first * sin + second * cos), dim=-1)
    return both.flatten(-2)


def scores(q, k):
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


@mistake("factor-once", SCORES,
         "Your scores are multiplied by the factor once. It stands on cos and on sin,"
         " so q brings it along and k brings it along: the product has it twice. (The"
         " reference prints it once, on the scores.)")
def _(q, k, cos, sin, factor):
    return scores(turned(q, cos, sin), turned(k, cos, sin)) * sharpen(factor)


@mistake("factor-four-times", SCORES,
         "The factor is in your scores four times: in both tables and again, squared,"
         " on the scores. One place is enough.")
def _(q, k, cos, sin, factor):
    return scores(turned(q, cos, sin), turned(k, cos, sin)) * sharpen(factor) ** 4


@mistake("factor-three-times", SCORES,
         "The factor is in your scores three times: in both tables, and once more on"
         " the scores. One place is enough.")
def _(q, k, cos, sin, factor):
    return scores(turned(q, cos, sin), turned(k, cos, sin)) * sharpen(factor) ** 3


@mistake("scores-divided", SCORES,
         "Your scores got smaller, so that attention spreads out even more. A longer"
         " context already raises the entropy; the temperature is there to sharpen.")
def _(q, k, cos, sin, factor):
    return scores(turned(q, cos, sin), turned(k, cos, sin)) / sharpen(factor) ** 2


@mistake("temperature-left-out", SCORES,
         "The turning is right and the temperature is missing: the factor changes"
         " nothing.")
def _(q, k, cos, sin, factor):
    return scores(turned(q, cos, sin), turned(k, cos, sin))


@mistake("root-of-width-forgotten", SCORES,
         "Your scores are too large by the root of the head width: the usual"
         " 1/sqrt(head_dim) is missing. The temperature comes in addition to it, not"
         " in its place.")
def _(q, k, cos, sin, factor):
    unscaled = turned(q, cos, sin) @ turned(k, cos, sin).transpose(-1, -2)
    return unscaled * sharpen(factor) ** 2


@mistake("nothing-turned", SCORES,
         "q and k are not turned: your scores do not depend on cos and sin.")
def _(q, k, cos, sin, factor):
    return scores(q, k) * sharpen(factor) ** 2


@mistake("only-q-turned", SCORES,
         "Only q is turned. Scores depend on the distance only when q and k both"
         " turn.")
def _(q, k, cos, sin, factor):
    return scores(turned(q, cos, sin), k) * sharpen(factor) ** 2


@mistake("softmax-too-early", SCORES,
         "Your rows add up to 1: the softmax is already applied. The scores before it"
         " are asked for.")
def _(q, k, cos, sin, factor):
    sharp = scores(turned(q, cos, sin), turned(k, cos, sin)) * sharpen(factor) ** 2
    return sharp.softmax(-1)


@mistake("halves-paired", SCORES,
         "You pair dimension i with i + head_dim/2. That is a fine layout, but the"
         " one of this course (and of apply_rotary's default) pairs neighbours, 2i and"
         " 2i + 1.")
def _(q, k, cos, sin, factor):
    def by_halves(x):
        one, two = x.chunk(2, dim=-1)
        return torch.cat((one * cos - two * sin, one * sin + two * cos), dim=-1)
    return scores(by_halves(q), by_halves(k)) * sharpen(factor) ** 2


@mistake("raw-factor-on-scores", SCORES,
         "You multiply the scores by the extension factor itself. The temperature"
         " grows with its logarithm only.")
def _(q, k, cos, sin, factor):
    return scores(turned(q, cos, sin), turned(k, cos, sin)) * factor
