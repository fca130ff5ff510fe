"""What a reader sees: figures, tables, sentences, and their HTML."""
