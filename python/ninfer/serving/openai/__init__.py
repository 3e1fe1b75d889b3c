"""The OpenAI protocol: chat completions and completions."""
