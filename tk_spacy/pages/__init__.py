"""Pages in HTML: one stylesheet, tables, charts, and trees side by side.

A page is one file without scripts, and asks nothing of other places.  Workflows say what stands in
it (`content`), or have a template of their own; `rendering` makes the text and writes it.
"""
