"""An explanation as a page of its own: trees side by side, scores, and examples, in HTML.

It needs no other file and no script, is light or dark as its reader's screen is, and escapes all
text.  Jinja2 comes with spaCy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from tk_spacy.reranker.explain import Explanation
from tk_spacy.spacy_io.tree_drawing import draw_tree
from tk_spacy.workflows.explain import ExplainedSentence
from tk_spacy.workflows.explanation_words import (
    arc_line,
    broken_words,
    marked_words,
    share_line,
    shared_line,
    source_line,
    split_line,
    strongest_features,
    what_line,
)

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="tk-spacy explain">
<title>{{ title }}</title>
<style>
:root { color-scheme: light dark; --text: #1c1e21; --back: #ffffff; --faint: #5c6470;
  --line: #d5d9de; --differs: #b3261e; --head: #cfe3ff; --modifier: #ffdcb8; --other: #dff1d8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --back: #16181b; --faint: #9aa3af; --line: #3a3f46;
    --differs: #ff8a80; --head: #1f4472; --modifier: #6b4310; --other: #2f5127; } }
body { margin: 0 auto; padding: 1rem; max-width: 110rem; color: var(--text);
  background: var(--back); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.1rem; } h3 { font-size: 1rem; margin-bottom: 0; }
.faint { color: var(--faint); }
.trees { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr)); }
figure { margin: 0; border: 1px solid var(--line); border-radius: .5rem; padding: .5rem;
  min-width: 0; }
.scroll { overflow-x: auto; }
.tk-differs { color: var(--differs); font-weight: bold; }
.tk-differs .displacy-word, .tk-differs .displacy-tag, .tk-differs .displacy-label,
.tk-differs .displacy-arrowhead { fill: var(--differs); }
.tk-differs .displacy-arc { stroke: var(--differs); stroke-width: 3px; }
table { border-collapse: collapse; } caption { text-align: left; font-weight: bold; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
mark { color: inherit; background: var(--other); padding: 0 .2rem; border-radius: .2rem; }
mark.h { background: var(--head); } mark.m { background: var(--modifier); }
mark sub { color: var(--faint); }
ol { padding-left: 1.5rem; } li { margin-bottom: .7rem; }
</style>
</head>
<body>
<h1>Why this tree? {{ title }}</h1>
<p dir="auto">{% for word in words -%}
<span{% if word.differs %} class="tk-differs"{% endif %}>{{ word.form }}</span> {% endfor %}</p>
<p class="faint">{{ source }}</p>
<div class="trees">
{% for tree in trees %}
<figure>
<figcaption><b>{{ tree.title }}</b></figcaption>
<div class="scroll" tabindex="0" role="img" aria-label="{{ tree.title }}">{{ tree.svg }}</div>
</figure>
{% endfor %}
</div>
<h2>What the scores are made of</h2>
<div class="scroll" tabindex="0"><table>
<thead><tr><th>component</th><th>counted in</th>
{% for tree in trees %}<th>{{ tree.role }}</th>{% endfor %}
{% if compared %}<th>difference</th>{% endif %}</tr></thead>
<tbody>
{% for row in rows %}<tr><td>{{ row.name }}</td><td>{{ row.where }}</td>
{% for value in row.numbers %}<td class="number">{{ value }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% if features %}
<h2>Features of the list that differ most</h2>
<div class="scroll" tabindex="0"><table>
<thead><tr><th>feature</th>{% for tree in trees %}<th>{{ tree.role }}</th>{% endfor %}
<th>difference</th></tr></thead>
<tbody>{% for row in features %}<tr><td>{{ row.name }}</td>
{% for value in row.numbers %}<td class="number">{{ value }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% endif %}
<h2>Arcs that differ</h2>
{% if not arcs %}<p>None.</p>{% endif %}
{% for arc in arcs %}
<h3 dir="auto">{{ arc.word }}</h3>
{% for side in arc.sides %}
<p><b>{{ side.role }}</b>: {{ side.arc }}<br><span class="faint">{{ side.split }}</span></p>
{% if side.examples %}<ol>
{% for item in side.examples %}
<li><span dir="auto">{% for word in item.words -%}
{% if word.slots %}<mark class="{{ word.role }}">{{ word.form }}<sub>{{ word.slots }}</sub></mark>
{%- else %}{{ word.form }}{% endif %} {% endfor %}</span><br>
<span class="faint">{{ item.what }}</span><br>{{ item.share }}; they share {{ item.shared }}</li>
{% endfor %}</ol>{% endif %}
{% endfor %}
{% endfor %}
</body>
</html>
"""


def page(made: ExplainedSentence) -> str:
    """The page, as text."""
    explanation = made.explanation
    differing = set(explanation.differing)
    trees = [
        {
            "role": tree.role,
            "title": f"{tree.role}: final score {tree.score:.4f}, rank {tree.rank} of "
            f"{explanation.n_candidates}" + (f"; breaks {broken}" if broken else ""),
            "svg": Markup(  # draw_tree escapes its texts
                draw_tree(
                    explanation.forms,
                    explanation.upos,
                    tree.heads,
                    tree.deprels,
                    differing=differing,
                    name=f"tree{number}",
                )
            ),
        }
        for number, tree in enumerate(explanation.trees)
        for broken in [broken_words(tree)]
    ]
    template = Environment(autoescape=True).from_string(PAGE)
    text: str = template.render(
        title=explanation.sent_id or made.file,
        words=[
            {"form": form, "differs": i in differing}
            for i, form in enumerate(explanation.forms, start=1)
        ],
        source=source_line(made),
        trees=trees,
        compared=len(trees) > 1,
        rows=_component_rows(explanation),
        features=_feature_rows(explanation),
        arcs=_arcs(explanation),
    )
    return text


def _shown(values: Sequence[float]) -> list[str]:
    texts = [f"{value:.4f}" for value in values]
    return [*texts, f"{values[0] - values[1]:+.4f}"] if len(values) > 1 else texts


def _component_rows(explanation: Explanation) -> list[Mapping[str, Any]]:
    rows = [
        {"name": name, "where": where, "numbers": _shown(values)}
        for name, where, values in explanation.components()
    ]
    scores = [tree.score for tree in explanation.trees]
    return [*rows, {"name": "final score", "where": "", "numbers": _shown(scores)}]


def _feature_rows(explanation: Explanation) -> list[Mapping[str, Any]]:
    return [
        {"name": name, "numbers": _shown(values)}
        for name, values in strongest_features(explanation)
    ]


def _arcs(explanation: Explanation) -> list[Mapping[str, Any]]:
    return [
        {
            "word": f"{arc.word} {explanation.forms[arc.word - 1]}",
            "sides": [
                {
                    "role": tree.role,
                    "arc": arc_line(explanation, number, arc.word),
                    "split": split_line(explanation, number, arc.word),
                    "examples": [
                        {
                            "words": [
                                {
                                    "form": form,
                                    "slots": " ".join(slots),
                                    "role": slots[0] if slots else "",
                                }
                                for form, slots in marked_words(item)
                            ],
                            "what": what_line(item),
                            "share": share_line(item),
                            "shared": shared_line(item),
                        }
                        for item in arc.influences[number]
                    ],
                }
                for number, tree in enumerate(explanation.trees)
            ],
        }
        for arc in explanation.arcs
    ]
