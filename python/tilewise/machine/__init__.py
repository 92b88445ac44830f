"""What this machine is and how fast it was measured to be; knows nothing of jobs."""
