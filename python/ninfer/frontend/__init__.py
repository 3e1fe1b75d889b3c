"""What a prompt and an answer mean: tokens, chat templates, stop strings, reasoning."""
