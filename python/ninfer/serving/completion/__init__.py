"""llama.cpp's own completion endpoint."""
