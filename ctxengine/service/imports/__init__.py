"""Transcripts imported by a job: the file kept until it is read, the job, and its start (design 9 and 10)."""
