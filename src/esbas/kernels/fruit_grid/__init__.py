"""The fruit collection task, compiled: random numbers and whole runs of SSBAS and ESBAS."""
