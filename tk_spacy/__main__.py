"""`python -m tk_spacy` is `tk-spacy`."""

from tk_spacy.cli import main

if __name__ == "__main__":
    main()
