SCORE_FEATURES: tuple[str, ...]
