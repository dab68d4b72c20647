"""Taggers, which give words UPOS, XPOS, FEATS and LEMMA, and the registry of their kinds."""
