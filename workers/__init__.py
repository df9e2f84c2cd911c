"""Door: Celery tasks. A message names a job; the job's row decides whether and what is done."""
