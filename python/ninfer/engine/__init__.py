"""Request order, lifecycle and publication: from prompts to tokens and text."""
