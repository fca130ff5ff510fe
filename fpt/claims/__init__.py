"""What the results say about the claims of the papers: rules, words, the table of verdicts. It imports no torch."""
