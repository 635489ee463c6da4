"""Windows of a text: options and problem of enwik8 and wikitext103."""
