"""Plain, slow twins of the fast routines, written from the paper and the design, sharing no code
with them beyond the part types' declarations and, for Phi_g, the feature ids."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import product


def length_bin(distance):
    """The bins of the design: 1, 2, 3, 4, 5-6, 7-10, 11-20, 21+."""
    length = abs(distance)
    for number, (low, high) in enumerate(
        [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 10), (11, 20), (21, math.inf)]
    ):
        if low <= length <= high:
            return number
    raise AssertionError(distance)


def node_strings(
    sentence, word, *, pos_column, use_cpos, morph, use_lemma=False, extras=(), tables=None
):
    """Table 1 of the paper as strings, for a word 1..n, the root (0) or the boundary (n + 1).

    Values never seen in training are kept: a test must not use them where that matters.
    """
    n = len(sentence.forms)
    tags = sentence.xpos if pos_column == "XPOS" else sentence.upos

    def value(name, position, *, context):
        if position == 0 and not context:
            return "<root>"
        if not 1 <= position <= n:
            return "<boundary>"
        column = {"form": sentence.forms, "pos": tags, "cpos": sentence.upos}[name]
        found = column[position - 1]
        return None if found == "_" else found

    names = ["form", "pos"] + (["cpos"] if use_cpos else [])
    out = {}
    inside = 1 <= word <= n
    for name in names:
        out[name] = value(name, word, context=False)
        if inside:
            out[name + "-1"] = value(name, word - 1, context=True)
            out[name + "+1"] = value(name, word + 1, context=True)
    given = {}
    if inside:
        feats = sentence.feats[word - 1]
        given = dict(f.split("=", 1) for f in feats.split("|")) if feats != "_" else {}
        if use_lemma:
            out["lemma"] = sentence.lemmas[word - 1]
        for name in extras:
            out[name] = extra_string(sentence, word, name, tables or {})
    for name in morph:
        out[name] = given.get(name)
    pairs = [("pos", "form")] + [("pos", name) for name in morph]
    if inside:
        pairs += [("pos-1", "pos"), ("pos", "pos+1")]
    both = {}
    for a, b in pairs:
        if out[a] is not None and out[b] is not None:
            both[f"{a}|{b}"] = f"{out[a]}|{out[b]}"
    out.update(both)
    return {f"{name}={value}" for name, value in out.items() if value is not None}


def extra_string(sentence, word, name, tables):
    """The value of an extra property of a word, spelled out; tables: file name -> {form: value}."""
    form, misc = sentence.forms[word - 1], sentence.misc[word - 1]
    kind, _, rest = name.partition(":")
    if kind == "misc":
        found = [item.split("=", 1)[1] for item in misc.split("|") if item.startswith(rest + "=")]
        return found[0] if found else None
    if form == "_":
        return None
    if kind == "table":
        file, _, length = rest.partition(":")
        value = tables[file].get(form, tables[file].get(form.lower()))
        return value[: int(length)] if value and length else value
    if kind == "shape":
        return re.sub(
            r"(.)\1+",
            r"\1\1",
            re.sub(r"[0-9]", "d", re.sub(r"[a-z]", "x", re.sub(r"[A-Z]", "X", form))),
        )
    if kind == "lower":
        return form.lower()
    length = int(kind[-1])
    letters = list(form.lower())
    return "".join(letters[:length] if kind.startswith("prefix") else letters[-length:])


def edge_strings(label, head, modifier):
    """label, dist, len of an arc; that into the boundary node (modifier None) has only a label."""
    if modifier is None:
        return {"label=<boundary>"}
    distance = modifier - head
    return {f"label={label}", f"dist={distance}", f"len={length_bin(distance)}"}


def tree_parts(heads, deprels, type_name):
    """Parts of a tree as {role: position} (boundary: None) with the labels of arcs by role."""
    n = len(heads)
    head = {m: heads[m - 1] for m in range(1, n + 1)}

    def sibling(m):
        h = head[m]
        between = [
            s for s in range(1, n + 1) if head[s] == h and s != m and min(h, m) < s < max(h, m)
        ]
        return (max(between) if m > h else min(between)) if between else None

    def label(m):
        return "<boundary>" if m is None else deprels[m - 1]

    parts = []
    for m in range(1, n + 1):
        h = head[m]
        part = {"h": h, "m": m, "label_m": label(m)}
        if type_name in ("grandparent", "grand-sibling"):
            if h == 0:
                continue
            part.update(g=head[h], label_h=label(h))
        if type_name in ("sibling", "grand-sibling", "tri-sibling"):
            part.update(s=sibling(m), label_s=label(sibling(m)))
        if type_name == "tri-sibling":
            if part["s"] is None:
                continue
            part.update(t=sibling(part["s"]), label_t=label(sibling(part["s"])))
        parts.append(part)
    return parts


# The slots of each part type, spelled out once more: ("node", role) or ("edge", head, dependent).
SLOTS = {
    "arc": [("node", "h"), ("edge", "h", "m"), ("node", "m")],
    "sibling": [
        ("node", "h"), ("edge", "h", "s"), ("node", "s"), ("edge", "h", "m"), ("node", "m"),
    ],
    "grandparent": [
        ("node", "g"), ("edge", "g", "h"), ("node", "h"), ("edge", "h", "m"), ("node", "m"),
    ],
    "grand-sibling": [
        ("node", "g"), ("edge", "g", "h"), ("node", "h"),
        ("edge", "h", "s"), ("node", "s"), ("edge", "h", "m"), ("node", "m"),
    ],
    "tri-sibling": [
        ("node", "h"), ("edge", "h", "t"), ("node", "t"),
        ("edge", "h", "s"), ("node", "s"), ("edge", "h", "m"), ("node", "m"),
    ],
}  # fmt: skip


def combinations(sentence, part, type_name, *, skip=(), **choices):
    """All property combinations of a part as strings, one of each slot's, as a Counter."""
    columns = [sorted(v) for v in slot_sets(sentence, part, type_name, skip=skip, **choices)]
    return Counter("&".join(choice) for choice in product(*columns))


def slot_sets(sentence, part, type_name, *, skip=(), **choices):
    """The property strings of each slot of a part, a skip or the always-on property among them."""
    n = len(sentence.forms)
    sets = []
    for slot in SLOTS[type_name]:
        if slot[0] == "node":
            place = part[slot[1]]
            values = node_strings(sentence, n + 1 if place is None else place, **choices)
            sets.append(frozenset(values | {"*"} if slot[1] in skip else values))
        else:
            head, dependent = part[slot[1]], part[slot[2]]
            values = edge_strings(part[f"label_{slot[2]}"], head, dependent)
            sets.append(frozenset(values | {"always"}))
    return tuple(sets)


def kernel_by_slots(a, b):
    """The kernel from slot_sets; that it equals the enumeration is itself tested."""
    return math.prod(len(x & y) for x, y in zip(a, b, strict=True))


def kernel(a, b):
    """The dot product of two counted combinations."""
    return sum(count * b[name] for name, count in a.items())


def algorithm_1(lists, *, iterations, C, kernel_scale=1.0, add_loss=False, order=None):
    """Algorithm 1 in plain Python.

    lists: dicts with "kernel": for each candidate a set of part names, "manual": for each candidate
    a Counter of features, "loss": a number per candidate, "oracle"; "k": a function of two part
    names of any two lists, (list number, part).
    order: the list of each step; None for one after the other, again and again.
    Returns (averaged alpha of each part as a dict, averaged w as a dict, number of updates).
    """
    alpha, w = {}, {}
    alpha_sum, w_sum = Counter(), Counter()
    updates = 0
    steps = len(lists) * iterations
    for t in range(steps):
        i = t % len(lists) if order is None else int(order[t])
        item = lists[i]
        k = item["k"]

        def score(j, item=item, i=i, k=k):
            total = sum(count * w.get(f, 0.0) for f, count in item["manual"][j].items())
            for part in item["kernel"][j]:
                total += kernel_scale * sum(a * k(p, (i, part)) for p, a in alpha.items())
            return total

        scores = [score(j) for j in range(len(item["loss"]))]
        chosen = [s + (item["loss"][j] if add_loss else 0.0) for j, s in enumerate(scores)]
        best = max(range(len(scores)), key=lambda j: (chosen[j], -j))
        oracle = item["oracle"]
        if best != oracle:
            plus = item["kernel"][oracle] - item["kernel"][best]
            minus = item["kernel"][best] - item["kernel"][oracle]
            signed = [((i, p), 1) for p in sorted(plus)] + [((i, p), -1) for p in sorted(minus)]
            norm = kernel_scale * sum(x * y * k(p, q) for p, x in signed for q, y in signed)
            difference = Counter(item["manual"][oracle])
            difference.subtract(item["manual"][best])
            norm += sum(v * v for v in difference.values())
            violation = scores[best] - scores[oracle] + item["loss"][best]
            if norm > 0 and violation > 0:
                tau = min(C, violation / norm)
                updates += 1
                for part, sign in signed:
                    alpha[part] = alpha.get(part, 0.0) + sign * tau
                for f, v in difference.items():
                    w[f] = w.get(f, 0.0) + tau * v
        for part, a in alpha.items():
            alpha_sum[part] += a
        for f, v in w.items():
            w_sum[f] += v
    return (
        {p: a / steps for p, a in alpha_sum.items()},
        {f: v / steps for f, v in w_sum.items()},
        updates,
    )


def algorithm_1_on_a_budget(lists, *, iterations, budget, kernel_scale=1.0):
    """Algorithm 1 with the kernel alone and BPA-S; arguments as algorithm_1.

    Keeps, of each update, its coefficient and the sum over the steps so far of its coefficients;
    what is removed is projected in both.  Returns (averaged alpha of each part as a Counter, the
    number of updates, the number of those that were removed).
    """
    kept, updates, removed = [], 0, 0
    steps = len(lists) * iterations
    k = lists[0]["k"]

    def between(a, b):
        return sum(x * y * k(p, q) for p, x in a for q, y in b)

    for t in range(steps):
        i = t % len(lists)
        item = lists[i]
        candidates = [[((i, part), 1) for part in names] for names in item["kernel"]]
        scores = [
            kernel_scale * sum(u["alpha"] * between(u["parts"], tree) for u in kept)
            for tree in candidates
        ]
        best = max(range(len(scores)), key=lambda j: (scores[j], -j))
        oracle = item["oracle"]
        if best != oracle:
            plus = sorted(item["kernel"][oracle] - item["kernel"][best])
            minus = sorted(item["kernel"][best] - item["kernel"][oracle])
            parts = [((i, p), 1) for p in plus] + [((i, p), -1) for p in minus]
            norm = between(parts, parts)
            violation = scores[best] - scores[oracle] + item["loss"][best]
            if norm > 0 and violation > 0:
                updates += 1
                new = {"parts": parts, "alpha": violation / (kernel_scale * norm), "sum": 0.0}
                shares = {id(u): between(u["parts"], parts) / norm for u in kept}

                def cost(u, shares=shares, norm=norm):
                    rest = between(u["parts"], u["parts"]) - shares[id(u)] ** 2 * norm
                    return u["alpha"] ** 2 * rest

                order = sorted(kept, key=cost)
                while sum(len(u["parts"]) for u in kept) + len(parts) > budget:
                    gone = order.pop(0)
                    kept = [u for u in kept if u is not gone]
                    removed += 1
                    new["alpha"] += gone["alpha"] * shares[id(gone)]
                    new["sum"] += gone["sum"] * shares[id(gone)]
                kept.append(new)
        for u in kept:
            u["sum"] += u["alpha"]
    averaged = Counter()
    for u in kept:
        for part, sign in u["parts"]:
            averaged[part] += sign * u["sum"] / steps
    return averaged, updates, removed
