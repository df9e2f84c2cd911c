"""Sample transcripts written for this project, each in another tool's format; nobody in them is real."""
