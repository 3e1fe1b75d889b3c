"""Protocols over HTTP: bodies into engine requests, engine events into answers, errors into statuses."""
