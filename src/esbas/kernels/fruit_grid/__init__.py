"""The fruit collection task, compiled: random numbers and whole runs of SSBAS, ESBAS and Kalman Thompson sampling."""
